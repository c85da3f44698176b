"""Which runs there are, and the facts of one: what was asked, where, and how it ended."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd

from liob_core.analysis import words
from liob_core.analysis.offload import offload_line
from liob_core.errors import UsageError
from liob_core.store import database

_LIST = """
    WITH counts AS (
        SELECT
            run_id, count(*) FILTER (NOT warmup) AS n_samples,
            count(*) FILTER (NOT warmup AND outcome NOT IN ('ok', 'length')) AS n_failed
        FROM raw.samples GROUP BY run_id
    ), models AS (
        SELECT
            run_id, count(*) AS n_variants, any_value(model_name ORDER BY position) AS model_name,
            string_agg(variant, ', ' ORDER BY bpw DESC NULLS LAST, position) AS variants
        FROM raw.variants GROUP BY run_id
    )
    SELECT
        runs.run_id, coalesce(edits.title, runs.title) AS title, runs.state, runs.reason, runs.created_utc,
        runs.ended_utc, runs.engine,
        models.model_name, models.variants, coalesce(models.n_variants, 0) AS n_variants, runs.reference,
        array_to_string(runs.tasks, ', ') AS tasks, runs.suite,
        coalesce(counts.n_samples, 0) AS n_samples, coalesce(counts.n_failed, 0) AS n_failed,
        machines.cpu_name
    FROM raw.runs AS runs
    LEFT JOIN counts USING (run_id)
    LEFT JOIN models USING (run_id)
    LEFT JOIN raw.machines AS machines USING (machine_id)
    LEFT JOIN raw.run_edits AS edits USING (run_id)
    WHERE edits.deleted_utc IS NULL
    ORDER BY runs.created_utc DESC, runs.run_id DESC
    LIMIT 2000
"""

_FACTS = """
    WITH counts AS (
        SELECT
            count(*) FILTER (NOT warmup) AS n_samples,
            count(*) FILTER (NOT warmup AND outcome NOT IN ('ok', 'length')) AS n_failed,
            count(*) FILTER (NOT warmup AND contended) AS n_contended
        FROM raw.samples WHERE run_id = $run_id
    ), models AS (
        SELECT
            count(*) AS n_variants,
            -- one name a model: publishers call the same weights by several
            (SELECT string_agg(DISTINCT name, ' and ') FROM (
                SELECT any_value(model_name ORDER BY is_reference DESC, position) AS name
                FROM raw.variants WHERE run_id = $run_id GROUP BY architecture, n_layers)) AS model_name,
            any_value(n_ctx ORDER BY is_reference DESC) AS n_ctx,
            any_value(threads ORDER BY is_reference DESC) AS threads
        FROM raw.variants WHERE run_id = $run_id
    )
    SELECT
        runs.run_id, coalesce(edits.title, runs.title) AS title, runs.state, runs.reason, runs.created_utc,
        runs.started_utc, runs.ended_utc,
        runs.engine, runs.engine_version, runs.reference, coalesce(runs.tasks, []) AS tasks, runs.suite,
        runs.n_suite_prompts, runs.n_blocks, runs.suite_repeats, runs.max_tokens, runs.temperature,
        runs.prompt_mode, runs.liob_version,
        models.n_variants, models.model_name, models.n_ctx, models.threads,
        counts.n_samples, counts.n_failed, counts.n_contended,
        machines.cpu_name, machines.physical_cores, machines.logical_cores, machines.ram_bytes,
        machines.os_name, machines.gpus
    FROM raw.runs AS runs
    CROSS JOIN counts
    CROSS JOIN models
    LEFT JOIN raw.machines AS machines USING (machine_id)
    LEFT JOIN raw.run_edits AS edits USING (run_id)
    WHERE runs.run_id = $run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run was and where; counts leave warm-ups out, bytes and tokens as named, times in UTC."""

    run_id: str
    title: str | None
    state: str
    reason: str | None
    created_utc: datetime | None
    started_utc: datetime | None
    ended_utc: datetime | None
    engine: str
    engine_version: str | None
    reference: str | None
    tasks: tuple[str, ...]
    suite: str | None
    n_suite_prompts: int | None
    n_blocks: int | None
    suite_repeats: int | None
    max_tokens: int | None
    temperature: float | None
    prompt_mode: str | None
    liob_version: str | None
    n_variants: int
    model_name: str | None
    n_ctx: int | None
    threads: int | None
    n_samples: int
    n_failed: int
    n_contended: int
    cpu_name: str | None
    physical_cores: int | None
    logical_cores: int | None
    ram_bytes: int | None
    os_name: str | None
    gpus: tuple[str, ...]
    offload: str | None = None  # where the variants ran, in a few words

    @property
    def machine_line(self) -> str:
        """The machine in one line: processor, cores, memory, graphics, system."""
        cores = self.physical_cores or self.logical_cores
        parts = [
            self.cpu_name or "unknown processor",
            f"{cores} core{'s' if cores != 1 else ''}" if cores else None,
            words.memory(self.ram_bytes) if self.ram_bytes else None,
            *self.gpus,
            self.os_name,
        ]
        return ", ".join(part for part in parts if part)


def list_runs(db: Path) -> pd.DataFrame:
    """Every run that is not deleted, newest first, at most 2,000.

    Columns: run_id, title, state, reason, created_utc, ended_utc, engine, model_name, variants, n_variants,
    reference, tasks, suite, n_samples, n_failed, cpu_name.
    """
    return database.query(db, _LIST)


def find_run(db: Path, name: str) -> str:
    """The id of a run, named in full or by the only beginning that fits; `last` is the newest."""
    ids = [str(run_id) for run_id in list_runs(db)["run_id"]]
    if name == "last" and ids:
        return ids[0]
    found = [run_id for run_id in ids if run_id == name] or [
        run_id for run_id in ids if name and run_id.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"There is no run {name!r} in {db}. Its runs are: {', '.join(ids[:5]) or 'none'}.")
    raise UsageError(f"{name!r} fits {len(found)} runs: {', '.join(found[:5])}; give more of its name.")


def run_facts(db: Path, run_id: str) -> RunFacts:
    """The facts of one run; raises UsageError where the database has no such run."""
    with database.read(db) as con:
        cursor = con.execute(_FACTS, {"run_id": run_id})
        names = [column[0] for column in cursor.description]
        row = cursor.fetchone()
        offload = offload_line(con, run_id)
    if row is None:
        raise UsageError(f"There is no run {run_id!r} in {db}. `list` shows the runs there are.")
    facts = dict(zip(names, row, strict=True))
    gpus = json.loads(facts["gpus"] or "[]")
    return RunFacts(
        **{**facts, "tasks": tuple(facts["tasks"]), "gpus": tuple(gpu["name"] for gpu in gpus)},
        offload=offload,
    )
