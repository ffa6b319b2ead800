"""Periodic aggregates that share state and work (Golab 2006, ch. 8).

request   what a query asks of synopses, if its plan has the shape for it
feed      one stream's rows, filtered and grouped one way, pre-aggregated sub-window by sub-window
group     queries that are answered from the same feeds, together
rules     SS1-SS4 and CS1-CS8: which queries may share what, and why
"""
