"""DataFrames in, Altair charts out: one module per question, one theme."""
