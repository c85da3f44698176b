"""A language model as a grader of open answers: asked so that the answer cannot steer it, and calibrated."""
