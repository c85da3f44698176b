"""The parts of the Trade-offs page: the limits, and what they lead to."""
