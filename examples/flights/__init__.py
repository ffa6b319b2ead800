"""A control room over the flights that left New York in the winter of 2013:
`python -m examples.flights`."""
