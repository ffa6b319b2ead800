"""Benchmarks: `python -m tests.benchmarks [names] [--quick] [--trace FILE] [--report DIR]`."""
