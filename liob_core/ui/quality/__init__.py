"""The parts of the Quality page: closeness, checks by category, judges."""
