"""What an answer is graded on: its scale, and the anchors where a prompt has no rubric of its own."""

LOWEST_SCORE = 1
HIGHEST_SCORE = 10

# Raise it whenever what a judge is told changes: opinions before and after are not comparable.
RUBRIC_VERSION = "1"

GENERAL_RUBRIC = """\
9-10: right and complete, does exactly what the task asks (form and length too), clear.
7-8: right in all that matters, with a small flaw or a part that is thin.
5-6: partly right: a real mistake or gap, but still of use to the reader.
3-4: mostly wrong, or misses the main point of the task.
1-2: wrong, off the task, or cannot be understood."""


def rubric_of(own: str | None) -> str:
    """The rubric to grade with: the prompt's own, else the general one."""
    return own.strip() if own else GENERAL_RUBRIC
