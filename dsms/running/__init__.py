"""Running queries: sources, the operator pipeline, the sink that numbers result rows, and the log
of results.

`runtime` holds all that is declared and moves it on; it and what works on it
(`tests/test_imports.py` says which) stand above the rooms `periodic`, `sharing` and `archiving`,
all else below them.
"""
