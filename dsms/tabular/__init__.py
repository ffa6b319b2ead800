"""Answers as tables, in process and in the client alike: Arrow and DataFrames with the types that
people want, HTML for notebooks, values as text."""
