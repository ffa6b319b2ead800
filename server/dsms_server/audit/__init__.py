"""The audit log: who did what, from where, and what came of it.

`events` says what a line holds and which kinds there are, `trail` is told of things by the server
and makes events of them (`sums`: of many alike one), `writer` is the thread that writes, `file` the
file with its rotation.
"""
