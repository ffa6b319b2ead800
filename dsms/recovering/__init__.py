"""Durability: the journal and checkpoints that an engine writes as it works, and recovery from them
after a crash.

Every input (rows, heartbeats, ends, moves of idle streams, statements, changes of tables) is
written to the journal before it is applied; now and then the whole state is written as a
checkpoint.  Recovery reads the newest checkpoint and applies the records behind it again.  What the
engine does is a function of its inputs in their order, so it ends in the state that it was in, and
result rows have the numbers that they had.  A restart costs the state (window contents, not
history) and the records since the checkpoint, of which there are no more than about as many bytes.

(The thesis leaves recovery open, §9.2; write-ahead journal and checkpoints are as in any database.)
"""
