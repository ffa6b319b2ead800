"""Running queries: sources, the operator pipeline, the sink that numbers result rows, and the log of results."""
