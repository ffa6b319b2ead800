"""Forty questions about two links of a network, answered beside each other:
`python -m examples.network`."""
