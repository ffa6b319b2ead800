"""What is next: `edf` says which periodic queries run together now, `groups` which group of them
may run, `transactions` which sub-window is read or written."""
