"""What is wrong with Arrow data from outside, apart from what reads it: who only tells of it loads
no Arrow."""


class Malformed(Exception):
    """The metadata contradicts itself or the body."""
