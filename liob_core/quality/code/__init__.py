"""Code in a model's answer: found, run within limits, and judged by a suite's tests."""
