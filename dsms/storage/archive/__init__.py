"""The archive: what has left the windows, on disk, in a doubly partitioned index (Golab 2006, ch.
4)."""
