"""Where a run comes from, as `runs.kind` says it."""

OWN = "liob"
STUDY = "original study"
KINDS = (OWN, STUDY)
