"""Stories: statements, rows that come at instants, and what must be pushed.  Golden files are
stories as text."""
