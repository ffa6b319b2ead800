"""Tables whose rows have versions: changed by statements, read as of an instant, followed by
retroactive joins."""
