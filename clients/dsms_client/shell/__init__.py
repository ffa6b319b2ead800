"""The shell: statements typed or read from files, shown in several forms."""
