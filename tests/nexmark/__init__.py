"""NEXMark: people, auctions and bids, 24 queries over them, and what these must answer.

The workload is that of Tucker, Tufte, Papadimos and Maier, "NEXMark: a benchmark for queries over
data streams" (2002), with the queries that were added since.  They stand in `tests/golden/nexmark`:
qN.cql is what dsms is asked, qN.sql what DuckDB is asked of the same events.
"""
