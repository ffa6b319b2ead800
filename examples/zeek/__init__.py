"""The logs of a network monitor, correlated by connection and by host: `python -m
examples.zeek`."""
