"""How close to the reference: the frame behind the closeness ladder, and what may be said of it."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core.analysis import words
from liob_core.quality.closeness.fidelity import (
    MIN_WINDOWS,
    RANKABLE_KLD,
    Estimate,
    interval,
)
from liob_core.store import database, schema

# The most ln PPL that may be lost; e^0.03 is a rise of 3 %.
MARGIN = 0.03
# So much can the kernels of another CPU change the perplexity of the very same file, as a share.
KERNEL_EFFECT = 0.006
# Databases of share mode are opened as they are; one from before closeness has none.
_SCHEMA_WITH_CLOSENESS = 4
# So many answers in a loop are the variant's doing, where the reference has fewer.
_BROKEN_LOOPS = 0.5

_TABLE = """
    SELECT
        closeness.variant,
        -- of several models each has a reference of its own, whose closeness is to nothing
        variants.is_reference OR (closeness.reference IS NULL AND closeness.ppl IS NOT NULL) AS is_reference,
        coalesce(closeness.reference, closeness.variant) AS model_reference, variants.position,
        variants.bpw, variants.file_bytes,
        variants.kv_type_k, variants.kv_type_v, variants.need_kv_bytes, variants.need_weights_bytes,
        variants.weights_sha256, variants.n_ctx AS context,
        closeness.* EXCLUDE (run_id, variant, verdict),
        deltas.verdict, deltas.p_holm, deltas.reason AS verdict_reason
    FROM main.closeness AS closeness
    JOIN raw.variants AS variants USING (run_id, variant)
    LEFT JOIN raw.paired_deltas AS deltas
        ON deltas.run_id = closeness.run_id AND deltas.variant = closeness.variant
        AND deltas.metric = 'ln_ratio'
    WHERE closeness.run_id = ?
    ORDER BY
        max(variants.is_reference) OVER (PARTITION BY coalesce(closeness.reference, closeness.variant)) DESC,
        coalesce(closeness.reference, closeness.variant), closeness.reference IS NOT NULL,
        variants.bpw DESC NULLS LAST, variants.need_kv_bytes DESC NULLS LAST, variants.position
"""
_LN_RATIOS = """
    SELECT variant, ln_ratio, ln_ratio_low, ln_ratio_high, ln_ratio_bound, ln_ratio_p, n_windows, ending,
        reason, unknown->>'ln_ratio_p' AS unknown_p
    FROM raw.fidelities WHERE run_id = ?
"""
_BROKEN = """
    SELECT variants.variant, variants.is_reference, variants.bpw, fidelities.broken
    FROM raw.variants AS variants LEFT JOIN raw.fidelities AS fidelities USING (run_id, variant)
    WHERE variants.run_id = ?
    ORDER BY variants.bpw DESC NULLS LAST, variants.position
"""
_LOOPS = """
    SELECT variant, avg((outcome = 'repetition')::INT) AS share FROM raw.samples
    WHERE run_id = ? AND task = 'suite' AND NOT warmup GROUP BY variant
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessFacts:
    """What a run's closeness says in words: the answer, what is broken, what it rests on, what limits it."""

    sentence: str
    broken: tuple[str, ...]
    basis: str
    build: str
    notes: tuple[str, ...]


def closeness_table(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant with a closeness result, the reference first, then many bits to few.

    The columns of the view `closeness` with Holm's verdict in `verdict`, and: is_reference, bpw, file_bytes,
    model_reference (what its model is compared with), kv_type_k, kv_type_v, need_kv_bytes,
    need_weights_bytes, weights_sha256, context (of the run, tokens), p_holm, ppl_low, ppl_high, kld_low,
    kld_high (95 %, t over windows), is_floor (the reference itself on other kernels), is_compressed (the same
    weights have a larger KV cache here too), `words` (the change of perplexity with its verdict). Empty where
    closeness was not measured.
    """
    with database.read(db) as con:
        if schema.current_version(con) < _SCHEMA_WITH_CLOSENESS:
            return pd.DataFrame()
        table = con.execute(_TABLE, [run_id]).df()
    for name, mean in (("ppl", "ppl"), ("kld", "kld_mean")):
        ends = [_ends(row, mean, f"{name}_se") for row in table.to_dict("records")]
        table[f"{name}_low"] = [low for low, _ in ends]
        table[f"{name}_high"] = [high for _, high in ends]
    # Unknown needs are NaN like every other unknown figure.
    needs = ["need_kv_bytes", "need_weights_bytes"]
    table[needs] = table[needs].astype("float64")
    rows = table.to_dict("records")
    reference = next((row for row in rows if row["is_reference"]), None)
    largest = table.groupby("weights_sha256")["need_kv_bytes"].transform("max")
    return table.assign(
        is_floor=[_is_floor(row, reference) for row in rows],
        is_compressed=table["need_kv_bytes"] < largest,
        words=[_verdict_words(row) for row in rows],
    )


def closeness_facts(db: Path, run_id: str) -> ClosenessFacts | None:
    """What a run's closeness says; None where it was not measured."""
    table = closeness_table(db, run_id)
    measured = [row for row in table.to_dict("records") if not pd.isna(row["ppl"])]
    if not measured:
        return None
    with database.read(db) as con:
        loops: dict[str, float] = dict(con.execute(_LOOPS, [run_id]).fetchall())
    first = measured[0]
    return ClosenessFacts(
        sentence=" ".join(_sentence(rows) for rows in _by_model(table.to_dict("records"))),
        broken=_broken(measured, loops),
        basis=f"{first['n_windows']:.0f} windows of {first['n_ctx']:.0f} tokens, "
        f"{first['window_choice']}, of {first['text']}: {first['n_tokens']:,.0f} scored tokens",
        build=f"{first['build']}, {_features(first['cpu_features'])}",
        notes=_notes(table.to_dict("records")),
    )


def broken_sizes(db: Path, run_id: str) -> tuple[str, ...]:
    """Each variant that is broken at its size and why, by closeness or by looping answers; then the bits."""
    with database.read(db) as con:
        rows = con.execute(_BROKEN, [run_id]).df().to_dict("records")
        loops: dict[str, float] = dict(con.execute(_LOOPS, [run_id]).fetchall())
    return _broken(rows, loops)


def ln_ratio_fields(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Any]]:
    """What `paired_deltas` says of the ln PPL ratio, by variant; `estimate` and `loss_bound` in nats."""
    found = {}
    for variant, ratio, low, high, bound, p_value, n, ending, reason, why in con.execute(
        _LN_RATIOS, [run_id]
    ).fetchall():
        found[variant] = {
            "estimate": ratio,
            "ci_low": low,
            "ci_high": high,
            "n": n or 0,
            "p_value": p_value,
            "loss_bound": bound,
            "reason": f"{ending}: {reason}" if ratio is None else why,
            "method": "t over windows, the larger of two standard errors" if p_value is not None else None,
        }
    return found


def closeness_columns(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Any]]:
    """What a table of results shows of closeness, by column and variant; empty columns without any."""
    names = ("ppl", "ln_ratio", "kld_mean", "same_top", "broken")
    rows = []
    if schema.current_version(con) >= _SCHEMA_WITH_CLOSENESS:
        sql = f"SELECT variant, {', '.join(names)} FROM raw.fidelities WHERE run_id = ?"  # noqa: S608
        rows = con.execute(sql, [run_id]).fetchall()
    return {name: {row[0]: row[1 + place] for row in rows} for place, name in enumerate(names)}


def closeness_failures(con: duckdb.DuckDBPyConnection, run_id: str) -> list[str]:
    """A sentence for each variant whose closeness could not be evaluated."""
    if schema.current_version(con) < _SCHEMA_WITH_CLOSENESS:
        return []
    failed = con.execute(
        "SELECT variant, ending, reason FROM raw.fidelities WHERE run_id = ? AND ppl IS NULL", [run_id]
    ).fetchall()
    return [f"{label}: closeness is unknown ({ending}): {reason}." for label, ending, reason in failed]


def at_most_higher(bound: float) -> str:
    """A one-sided bound of the ln PPL ratio in words: "perplexity at most 2.1 % higher"."""
    rise = math.expm1(bound)
    if rise <= 0:
        return "perplexity no higher"
    # Rounded up, so that it stays a bound.
    return f"perplexity at most {math.ceil(round(rise * 1000, 6)) / 10:.1f} % higher"


def _is_floor(row: dict[Any, Any], reference: dict[Any, Any] | None) -> bool:
    """Whether a row is the reference's weights and cache on other kernels, so that it shows the noise.

    The same kernels give 0 by construction, which is no measurement of it.
    """
    if reference is None or row["is_reference"] or not row["kld_mean"] > 0:
        return False
    same = ("weights_sha256", "kv_type_k", "kv_type_v")
    return isinstance(row["weights_sha256"], str) and all(row[name] == reference[name] for name in same)


def _ends(row: dict[Any, Any], mean: str, error: str) -> tuple[float | None, float | None]:
    """Both ends of a mean's 95 % interval; None where there is none."""
    if pd.isna(row[mean]) or pd.isna(row[error]) or pd.isna(row["n_windows"]):
        return None, None
    both = interval(Estimate(row[mean], row[error], None), int(row["n_windows"]))
    return (None, None) if both is None else (both.low, both.high)


def _verdict_words(row: dict[Any, Any]) -> str:
    if row["is_reference"]:
        return "reference"
    ratio = None if pd.isna(row["ln_ratio"]) else row["ln_ratio"]
    return words.verdict("ln_ratio", ratio, row["verdict"], row["verdict_reason"], _count(row["n_windows"]))


def _features(system_info: str) -> str:
    """The features that llama.cpp says are in use, without those that are not."""
    names = re.findall(r"(\w+) = 1\b", system_info)
    return ", ".join(names) or system_info


def _count(n: float) -> int | None:
    return None if pd.isna(n) else int(n)


def _by_model(rows: list[dict[Any, Any]]) -> list[list[dict[Any, Any]]]:
    """The rows of each model together, in their order."""
    names = dict.fromkeys(row["model_reference"] for row in rows)
    return [[row for row in rows if row["model_reference"] == name] for name in names]


def _sentence(rows: list[dict[Any, Any]]) -> str:
    """How far down the ladder perplexity holds; the first variant that may lose more ends it."""
    reference = next((row for row in rows if row["is_reference"]), None)
    others = [row for row in rows if not row["is_reference"]]
    if reference is None or not others:
        alone = rows[0]
        return f"{alone['variant']}: perplexity {words.three_digits(alone['ppl'])} on {alone['text']}."
    if all(pd.isna(row["ln_ratio_bound"]) for row in others):
        known = max((int(row["n_windows"]) for row in others if not pd.isna(row["n_windows"])), default=0)
        return f"{known} windows are too few for a verdict: it takes {MIN_WINDOWS}."
    holds, given_up = None, set()
    for row in others:
        if row["is_compressed"] and row["weights_sha256"] in given_up:
            continue
        if pd.isna(row["ln_ratio_bound"]) or row["ln_ratio_bound"] > MARGIN:
            if not row["is_compressed"]:
                break
            # That cache loses too much for these weights; smaller weights with a whole cache may not.
            given_up.add(row["weights_sha256"])
            continue
        holds = row
    name = reference["variant"]
    if holds is None:
        allowed = words.percent(math.expm1(MARGIN))
        return f"Nothing below {name} is shown to raise perplexity by at most {allowed}."
    return f"Down to {holds['variant']}: {at_most_higher(holds['ln_ratio_bound'])} than {name}'s (95 %)."


def _broken(rows: list[dict[Any, Any]], loops: dict[str, float]) -> tuple[str, ...]:
    """Each variant that is broken at its size and why, then the bits at which that begins."""
    reference = next((row["variant"] for row in rows if row["is_reference"]), None)
    found = []
    for row in rows:
        share = loops.get(row["variant"], 0.0)
        why = row["broken"] if isinstance(row["broken"], str) else None
        if why is None and share >= _BROKEN_LOOPS > loops.get(reference or "", 0.0):
            why = f"{words.percent(share)} of its answers loop"
        if why is not None and not row["is_reference"]:
            found.append((row["bpw"], f"{row['variant']} is broken at this size: {why}"))
    if not found:
        return ()
    bits = [bpw for bpw, _ in found if not pd.isna(bpw)]
    start = (f"On this ladder it starts at {max(bits):.2f} true bits per weight",) if bits else ()
    return tuple(f"{sentence}." for sentence in (*(sentence for _, sentence in found), *start))


def _notes(rows: list[dict[Any, Any]]) -> tuple[str, ...]:
    """What limits the figures, one sentence each."""
    notes = []
    if len(_by_model(rows)) > 1:
        notes.append(
            "Each model is compared with a reference of its own: perplexity and KL divergence count tokens, "
            "and those of two models differ, so that they say nothing across them."
        )
    near = [row["variant"] for row in rows if row["kld_mean"] < RANKABLE_KLD]
    if near:
        notes.append(f"Below {RANKABLE_KLD}, KL divergence does not rank variants: {', '.join(near)}.")
    notes.append(
        f"On other CPU kernels the same file gives figures up to {KERNEL_EFFECT * 100:.1f} % different, on a "
        "GPU others again: compare them within one build only."
    )
    small = [row["variant"] for row in rows if abs(row["ln_ratio"]) < KERNEL_EFFECT]
    if small:
        notes.append(f"Changes of perplexity that small hold for this build only: {', '.join(small)}.")
    return tuple(notes)
