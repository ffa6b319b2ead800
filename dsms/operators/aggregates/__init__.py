"""Aggregates: what each adds up, and what it must keep for that, apart from how rows come and go."""
