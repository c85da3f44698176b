"""The three steps of a new benchmark: what to compare, what to ask, how far to go."""
