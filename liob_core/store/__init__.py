"""Where results live: the run folder while a run lives, DuckDB as the database of record."""
