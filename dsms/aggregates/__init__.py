"""Aggregates: what each means (`cards`), and how its answers are computed (a file a family)."""
