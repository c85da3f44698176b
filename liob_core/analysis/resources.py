"""What the machine did during a run: readings over time and the requests beside them, small enough to draw.

Everything is aggregated in SQL, so a picture holds at most 2,000 marks however long the run was. Times are
ns since 1970 in the arguments and seconds since the run's start in the frames.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from liob_core.store import database

MAX_LINE_MARKS = 1_400
MAX_REQUEST_MARKS = 400
MAX_LOAD_MARKS = 150
# Two late readings in a row can be a busy scheduler; from here on something was not read.
GAP_PERIODS = 3


@dataclass(frozen=True, slots=True)
class _Series:
    """One line: its name, its panel, and the SQL value in the panel's unit."""

    name: str
    panel: str
    value: str


# Memory in bytes, use in % of all cores or of the devices, power in W.
_MACHINE_SERIES = (
    _Series("engine", "memory", "rss_bytes"),
    _Series("machine", "memory", "system_ram_bytes"),
    _Series("engine", "cpu", "engine_cpu_pct / $n_cores"),
    _Series("machine", "cpu", "system_cpu_pct"),
)
_DEVICE_SERIES = (
    _Series("device", "memory", "used_bytes"),
    _Series("device", "gpu", "utilization_pct"),
    _Series("device", "power", "power_w"),
)

# All devices together: a sum is known only where every device told its part.
_DEVICES = """
    SELECT
        utc_ns,
        CASE WHEN count(used_bytes) = count(*) THEN sum(used_bytes) END AS used_bytes,
        avg(utilization_pct) AS utilization_pct,
        CASE WHEN count(power_w) = count(*) THEN sum(power_w) END AS power_w
    FROM raw.gpu_readings
    WHERE run_id = $run_id AND utc_ns BETWEEN $start_ns AND $end_ns
    GROUP BY utc_ns
"""
_READINGS = "SELECT * FROM raw.readings WHERE run_id = $run_id AND utc_ns BETWEEN $start_ns AND $end_ns"

_SPAN = """
    SELECT min(first_ns), max(last_ns) FROM (
        SELECT min(utc_ns) AS first_ns, max(utc_ns) AS last_ns FROM raw.readings WHERE run_id = $run_id
        UNION ALL
        SELECT min(epoch_ns(started_utc)), max(epoch_ns(started_utc) + (coalesce(load_ms, 0) * 1e6)::BIGINT)
        FROM raw.loads WHERE run_id = $run_id
        UNION ALL
        SELECT epoch_ns(min(started_utc)), max(epoch_ns(started_utc) + coalesce(end_ns, 0))
        FROM raw.samples WHERE run_id = $run_id
    )
"""

_REQUESTS = f"""
    WITH shown AS (
        SELECT
            *, epoch_ns(started_utc) AS start_ns, epoch_ns(started_utc) + coalesce(end_ns, 0) AS finish_ns,
            count(*) OVER () AS n_all
        FROM raw.samples
        WHERE run_id = $run_id AND epoch_ns(started_utc) <= $end_ns
            AND epoch_ns(started_utc) + coalesce(end_ns, 0) >= $start_ns
    ), grouped AS (
        SELECT
            variant, min(start_ns) AS start_ns, max(finish_ns) AS finish_ns, count(*) AS n_requests,
            count(*) FILTER (outcome NOT IN ('ok', 'length')) AS n_failed, bool_and(warmup) AS is_warmup,
            string_agg(DISTINCT coalesce(shape, task), ', ' ORDER BY coalesce(shape, task)) AS what,
            if(count(*) = 1, any_value(prompt_id), NULL) AS prompt_id,
            if(count(*) = 1, any_value(outcome), NULL) AS outcome
        FROM shown
        GROUP BY variant, load_id, if(
            n_all <= {MAX_REQUEST_MARKS}, sample_id,
            ((start_ns - $start_ns) // greatest(1, ($end_ns - $start_ns) // $n_buckets))::VARCHAR
        )
    )
    SELECT grouped.variant, variants.bpw, variants.is_reference, grouped.* EXCLUDE (variant)
    FROM grouped JOIN raw.variants AS variants USING (variant)
    WHERE variants.run_id = $run_id
    ORDER BY grouped.start_ns LIMIT {MAX_REQUEST_MARKS}
"""  # noqa: S608 - no text from outside

_LOADS = f"""
    SELECT
        loads.variant, epoch_ns(loads.started_utc) AS start_ns,
        epoch_ns(loads.started_utc) + coalesce(loads.load_ms * 1e6, 0)::BIGINT AS finish_ns,
        epoch_ns(loads.ended_utc) AS ended_ns, loads.block, loads.outcome, loads.load_ms
    FROM raw.loads AS loads
    WHERE loads.run_id = $run_id AND epoch_ns(loads.started_utc) <= $end_ns
        AND coalesce(epoch_ns(loads.ended_utc), $end_ns) >= $start_ns
    ORDER BY loads.started_utc LIMIT {MAX_LOAD_MARKS}
"""  # noqa: S608 - no text from outside

_PARTS = """
    SELECT
        loads.load_id, loads.variant, loads.block, epoch_ns(loads.started_utc) AS start_ns,
        greatest(
            coalesce(epoch_ns(loads.ended_utc), 0),
            coalesce(max(epoch_ns(samples.started_utc) + coalesce(samples.end_ns, 0)), 0),
            epoch_ns(loads.started_utc) + 1000000
        ) AS end_ns
    FROM raw.loads AS loads LEFT JOIN raw.samples AS samples USING (load_id)
    WHERE loads.run_id = ? AND loads.started_utc IS NOT NULL
    GROUP BY loads.load_id, loads.variant, loads.block, loads.started_utc, loads.ended_utc
    ORDER BY loads.started_utc LIMIT 500
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """When a run's readings and requests lie (ns since 1970), how many readings, and what is not read."""

    start_ns: int
    end_ns: int
    n_readings: int
    n_gpu_readings: int
    missing: Mapping[str, str]  # source -> why it gives nothing

    @property
    def seconds(self) -> float:
        """How long it is, in s."""
        return (self.end_ns - self.start_ns) / 1e9


def extent(db: Path, run_id: str) -> Extent | None:
    """The time that a run's readings and requests cover; None where there is neither."""
    with database.read(db) as con:
        start_ns, end_ns = con.execute(_SPAN, {"run_id": run_id}).fetchall()[0]
        if start_ns is None:
            return None
        n_readings, n_gpu_readings = con.execute(
            "SELECT (SELECT count(*) FROM raw.readings WHERE run_id = $run_id), "
            "(SELECT count(*) FROM raw.gpu_readings WHERE run_id = $run_id)",
            {"run_id": run_id},
        ).fetchall()[0]
        machine = con.execute(
            "SELECT missing_sources, gpu_reason FROM raw.machines "
            "WHERE machine_id = (SELECT machine_id FROM raw.runs WHERE run_id = ?)",
            [run_id],
        ).fetchone()
    missing: dict[str, str] = json.loads(machine[0] or "{}") if machine else {}
    if machine and machine[1]:
        missing["gpu"] = machine[1]
    return Extent(
        start_ns=start_ns,
        end_ns=max(end_ns, start_ns + 1),
        n_readings=n_readings,
        n_gpu_readings=n_gpu_readings,
        missing=missing,
    )


def lines(db: Path, run_id: str, start_ns: int, end_ns: int, zero_ns: int) -> pd.DataFrame:
    """Readings between two moments as lines, one row a bucket and series, at most 1,400.

    Columns: panel (memory, cpu, gpu, power), series (engine, machine, device), segment (rises at each gap),
    gap_s (how long nothing was read before this row; 0 where nothing is missing), first_s, last_s, at_s (the
    bucket's middle), low, high, mean, peak_s (when `high` was read) and n; bytes, % (100 = all cores or all
    of the devices) and W. Times are seconds since `zero_ns`.
    """
    parameters = {"run_id": run_id, "start_ns": start_ns, "end_ns": end_ns, "zero_ns": zero_ns}
    with database.read(db) as con:
        hz, n_cores = con.execute(
            "SELECT coalesce(runs.monitor_hz, 10), machines.logical_cores FROM raw.runs AS runs "
            "LEFT JOIN raw.machines AS machines USING (machine_id) WHERE run_id = ?",
            [run_id],
        ).fetchall()[0]
        has_devices = con.execute(
            "SELECT count(*) FROM raw.gpu_readings WHERE run_id = ? LIMIT 1", [run_id]
        ).fetchall() != [(0,)]
        groups = [(_READINGS, _MACHINE_SERIES)] + ([(_DEVICES, _DEVICE_SERIES)] if has_devices else [])
        n_series = sum(len(series) for _, series in groups)
        shared = {
            **parameters,
            "width_ns": max(round(1e9 / hz), -(-(end_ns - start_ns + 1) // (MAX_LINE_MARKS // n_series))),
            "period_ns": 1e9 / hz,
        }
        frames = []
        for source, series in groups:
            own = {"n_cores": n_cores} if series is _MACHINE_SERIES else {}
            frames.append(con.execute(_line_query(source, series), {**shared, **own}).df())
    return pd.concat(frames, ignore_index=True)


def _line_query(source: str, series: tuple[_Series, ...]) -> str:
    """One pass over the readings: every series' low, high, mean and gaps by bucket of time."""
    structs = ", ".join(
        f"{{'panel': '{line.panel}', 'series': '{line.name}', "
        f"'low': min({line.value})::DOUBLE, 'high': max({line.value})::DOUBLE, "
        f"'mean': avg({line.value})::DOUBLE, 'n': count({line.value}), "
        f"'first_ns': min(utc_ns) FILTER (({line.value}) IS NOT NULL), "
        f"'last_ns': max(utc_ns) FILTER (({line.value}) IS NOT NULL), "
        f"'peak_ns': arg_max(utc_ns, {line.value})}}"
        for line in series
    )
    return f"""
        WITH source AS ({source}),
        buckets AS (
            SELECT (utc_ns - $start_ns) // $width_ns AS bucket, unnest([{structs}], recursive := true)
            FROM source GROUP BY bucket
        ), known AS (
            SELECT *, lag(last_ns) OVER (PARTITION BY panel, series ORDER BY bucket) AS before_ns
            FROM buckets WHERE n > 0
        ), periods AS (
            -- devices are read less often than the machine where their driver is slow
            SELECT panel, series, greatest(
                $period_ns, coalesce(median((last_ns - first_ns) / (n - 1)) FILTER (n > 1), 0)
            ) AS period_ns
            FROM known GROUP BY panel, series
        ), gaps AS (
            SELECT known.*, CASE WHEN first_ns - before_ns > {GAP_PERIODS} * period_ns
                THEN (first_ns - before_ns) / 1e9 ELSE 0 END AS gap_s
            FROM known JOIN periods USING (panel, series)
        )
        SELECT
            panel, series,
            sum((gap_s > 0)::INTEGER) OVER (PARTITION BY panel, series ORDER BY bucket)::INTEGER AS segment,
            gap_s, (first_ns - $zero_ns) / 1e9 AS first_s, (last_ns - $zero_ns) / 1e9 AS last_s,
            ((first_ns + last_ns) / 2 - $zero_ns) / 1e9 AS at_s, low, high, mean,
            (peak_ns - $zero_ns) / 1e9 AS peak_s, n
        FROM gaps ORDER BY panel, series, bucket
    """  # noqa: S608 - no text from outside


def requests(db: Path, run_id: str, start_ns: int, end_ns: int, zero_ns: int) -> pd.DataFrame:
    """Requests and loads between two moments as bars, one row each, neighbours merged above 400 requests.

    Columns: kind (request, load), variant, bpw, is_reference, start_s, end_s, n_requests, n_failed,
    is_warmup, what, prompt_id, outcome. Times are seconds since `zero_ns`.
    """
    parameters = {"run_id": run_id, "start_ns": start_ns, "end_ns": end_ns}
    with database.read(db) as con:
        n_loads = con.execute("SELECT count(*) FROM raw.loads WHERE run_id = ?", [run_id]).fetchall()[0][0]
        # A bucket that two loads share becomes two bars.
        n_buckets = max(50, MAX_REQUEST_MARKS - n_loads)
        bars = con.execute(_REQUESTS, {**parameters, "n_buckets": n_buckets}).df().assign(kind="request")
        loads = con.execute(_LOADS, parameters).df()
        ladder = con.execute(
            "SELECT variant, bpw, is_reference FROM raw.variants WHERE run_id = ?", [run_id]
        ).df()
    loads = loads.merge(ladder, on="variant").assign(
        kind="load", n_requests=0, n_failed=0, is_warmup=False, what="load", prompt_id=None
    )
    both = pd.concat([bars, loads], ignore_index=True)
    both["start_s"] = (both["start_ns"] - zero_ns) / 1e9
    both["end_s"] = (both["finish_ns"] - zero_ns) / 1e9
    return both[
        [
            *("kind", "variant", "bpw", "is_reference", "start_s", "end_s", "n_requests", "n_failed"),
            *("is_warmup", "what", "prompt_id", "outcome"),
        ]
    ]


def parts(db: Path, run_id: str) -> pd.DataFrame:
    """The loads of a run in order, as parts of its time: load_id, variant, block, start_ns, end_ns."""
    return database.query(db, _PARTS, [run_id])
