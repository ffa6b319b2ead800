"""One module per sub-command of `dsms`: `configure(parser)` declares its options, `run(args)`
returns the exit code."""
