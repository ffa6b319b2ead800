"""Plans run once over what is there: one-time queries, and periodic ones that no synopsis fits
(window scan, WS).

plan --render--> steps: SQL for DuckDB where its meaning is exactly ours, our own kernels where it
is not --run--> rows
"""
