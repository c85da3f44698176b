"""Runs written straight into the tables, as for the analysis room."""

from tests.unit.analysis.conftest import empty_database, writer

__all__ = ["empty_database", "writer"]
