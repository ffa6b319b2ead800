"""What stands in files of known formats, taken apart so that one value of it can be another."""
