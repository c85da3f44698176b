"""Cached answers of the analysis room: frames only, forgotten when the database file changes."""
