"""Spark jobs over an archive of flights: see README.md beside this file."""
