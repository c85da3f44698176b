"""All runs of a database with what was said about them, deleted ones too."""

from pathlib import Path

import pandas as pd

from liob_core.store import database, schema
from liob_core.store.kinds import OWN

MAX_RUNS = 2_000

_HISTORY = """
    SELECT
        runs.run_id, runs.title, runs.note, runs.deleted_utc, runs.state, runs.created_utc,
        epoch(runs.ended_utc - runs.started_utc) AS seconds, runs.engine, runs.engine_version,
        models.model_name, models.variants, coalesce(models.n_variants, 0) AS n_variants,
        array_to_string(runs.tasks, ', ') AS tasks, runs.suite, runs.n_blocks, runs.n_samples,
        machines.cpu_name, runs.liob_version, {kind} AS kind
    FROM main.runs AS runs
    LEFT JOIN (
        SELECT
            run_id, count(*) AS n_variants, any_value(model_name ORDER BY position) AS model_name,
            string_agg(variant, ', ' ORDER BY bpw DESC NULLS LAST, position) AS variants
        FROM raw.variants GROUP BY run_id
    ) AS models USING (run_id)
    LEFT JOIN raw.machines AS machines USING (machine_id)
    ORDER BY runs.created_utc DESC, runs.run_id DESC
    LIMIT {most}
"""
# Databases of share mode are opened as they are; in one from before imports every run is LIOB's own.
_SCHEMA_WITH_KINDS = 9


def history(db: Path) -> pd.DataFrame:
    """Every run, newest first, at most 2,000; `deleted_utc` tells which are hidden elsewhere.

    Columns: run_id, title, note, deleted_utc, state, created_utc, seconds (from start to end), engine,
    engine_version, model_name, variants, n_variants, tasks, suite, n_blocks, n_samples, cpu_name,
    liob_version, kind (liob, original study).
    """
    with database.read(db) as con:
        has_kinds = schema.current_version(con) >= _SCHEMA_WITH_KINDS
        return con.execute(_HISTORY.format(kind="runs.kind" if has_kinds else f"'{OWN}'", most=MAX_RUNS)).df()
