"""A server and its clients in one process and one thread: their network, disk and clocks are
simulated."""
