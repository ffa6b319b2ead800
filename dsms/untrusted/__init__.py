"""Arrow data from outside is judged here before a cast or a kernel sees it: types, sizes, then the
contents."""
