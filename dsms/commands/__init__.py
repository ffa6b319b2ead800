"""What each kind of statement does to an engine."""
