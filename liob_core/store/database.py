"""The database of record, as the other rooms see it."""

from liob_core.store.connection import query, read, transaction, write
from liob_core.store.ingest import IngestReport, ingest, is_behind, runs_behind

__all__ = ["IngestReport", "ingest", "is_behind", "query", "read", "runs_behind", "transaction", "write"]
