"""What can be taken along: a whole run as one file."""

import io
import tempfile
import zipfile
from pathlib import Path

from liob_core.store.share import export_run

FORMATS = {"duckdb": "DuckDB", "parquet": "Parquet", "csv": "CSV", "json": "JSON"}
MIME = {
    "duckdb": "application/octet-stream",
    "parquet": "application/zip",
    "csv": "application/zip",
    "json": "application/json",
}


def export_name(run_id: str, format_: str) -> str:
    """The name of the file that `export_bytes` fills."""
    ending = {"parquet": "parquet.zip", "csv": "csv.zip"}.get(format_, format_)
    return f"liob-{run_id}.{ending}"


def export_bytes(database: Path, run_id: str, format_: str, *, with_texts: bool = True) -> bytes:
    """A run as one file: JSON or DuckDB as it is, the folder of CSV or Parquet files as a ZIP archive."""
    with tempfile.TemporaryDirectory() as folder:
        made = export_run(database, run_id, format_, Path(folder) / f"liob-{run_id}", with_texts=with_texts)
        if made.is_file():
            return made.read_bytes()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(made.iterdir()):
                file.write(path, f"liob-{run_id}/{path.name}")
        return archive.getvalue()
