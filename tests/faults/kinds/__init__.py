"""Kinds of cases, and who has to suffer them."""
