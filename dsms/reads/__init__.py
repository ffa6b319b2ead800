"""What a plan that is run once reads: rows of rings, of archives, of answers and tables."""
