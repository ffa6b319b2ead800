"""Strategies: schemas, input, tables that change, and queries as text over every construct of the
language."""
