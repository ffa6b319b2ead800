"""Whatever a user holds rows in -> named Arrow columns or plain values, before any schema is known.

The engine's intake and the client both begin here, so that the same input means the same in process
and over TCP.
"""
