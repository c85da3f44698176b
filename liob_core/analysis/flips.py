"""Is it real? Whether a variant's win over the reference is more than the reference's own noise.

One graded answer a prompt gives flips and McNemar's exact test; several seeds give the mean over seeds, and
how often the reference flips against itself, which is what any flip must be seen against.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.deltas import BETTER, NOT_COMPARABLE, SAME
from liob_core.analysis.seeds import Disagreement, disagreement, read_passes
from liob_core.store import database, schema

# Databases of share mode are opened as they are; an older one has no seeds, and no view of flips.
_SCHEMA_WITH_SEEDS = 8
SUGGESTED_SEEDS = 5

Row = dict[str, Any]

_RUN = """
    SELECT runs.n_seeds, runs.temperature, runs.suite,
        (SELECT count(DISTINCT block) FROM raw.samples AS samples WHERE samples.run_id = runs.run_id
            AND task = 'suite' AND NOT warmup) AS n_answers
    FROM raw.runs AS runs WHERE run_id = ?
"""
_VARIANTS = """
    SELECT variant, is_reference, bpw FROM raw.variants WHERE run_id = ?
    ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""
# Ollama's own files have names that nobody types.
_MODELS = """
    SELECT engine, if(engine = 'ollama', engine_model, coalesce(file_name, variant)) AS model
    FROM raw.variants WHERE run_id = ? ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""
_FLIPS = "SELECT variant, direction, prompt_id FROM main.flips WHERE run_id = ? ORDER BY prompt_id"
_RATES = """
    SELECT variant, seed_pass_rate, seed_pass_rate_ci_low, seed_pass_rate_ci_high FROM main.results
    WHERE run_id = ?
"""
_DELTAS = """
    SELECT variant, metric, estimate, ci_low, ci_high, n, p_value, p_holm, verdict, reason, loss_bound
    FROM raw.paired_deltas WHERE run_id = ? AND metric IN ('pass_rate', 'seed_pass_rate')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipFacts:
    """What the flips of a run say in words, and what they are seen against.

    `noise_flips`: on how many prompts two answers of the reference differ in their check, on average; None
    with the reason in `noise`. `reference_rate`: its mean pass rate over seeds. `missing` says what one
    answer a prompt cannot tell, `command` how to get it.
    """

    reference: str
    n_prompts: int
    n_seeds: int
    temperature: float | None
    sentence: str
    noise: str
    noise_flips: float | None
    reference_rate: str | None
    missing: str | None
    command: str | None


def flip_facts(db: Path, run_id: str) -> FlipFacts | None:
    """The facts of a run; None where nothing was checked, or there is nothing to compare."""
    with database.read(db) as con:
        return _facts(con, run_id)


def flip_table(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant but the reference, from many bits to few; empty where nothing can be compared.

    Columns: variant, is_reference, bpw; of one graded answer a prompt n (prompts checked for both), n_lost,
    n_gained, lost_prompts, gained_prompts (names, joined by ", "), estimate, ci_low, ci_high (a difference of
    shares), p_value, p_holm, verdict, reason, loss_bound; of several seeds seed_rate, seed_rate_low,
    seed_rate_high (its mean pass rate), seed_estimate, seed_low, seed_high, seed_n, seed_p_holm,
    seed_verdict; mean_lost, mean_gained and own_flips (prompts: between two answers from different blocks, of
    the variant and the reference, and of the variant alone); is_surprise (fewer bits, more prompts passed),
    sentence.
    """
    with database.read(db) as con:
        return pd.DataFrame(_rows(con, run_id))


def _rows(con: duckdb.DuckDBPyConnection, run_id: str) -> list[Row]:
    if schema.current_version(con) < _SCHEMA_WITH_SEEDS:
        return []
    variants = con.execute(_VARIANTS, [run_id]).fetchall()
    base = next((row for row in variants if row[1]), None)
    if base is None:
        return []
    reference, _, base_bpw = base
    deltas = _deltas(con, run_id)
    prompts: dict[tuple[str, str], list[str]] = {}
    for variant, direction, prompt_id in con.execute(_FLIPS, [run_id]).fetchall():
        prompts.setdefault((variant, direction), []).append(prompt_id)
    passes, rates = read_passes(con, run_id), _rates(con, run_id)
    rows = []
    for variant, is_reference, bpw in variants:
        one = deltas.get((variant, "pass_rate"))
        if is_reference or one is None:
            continue
        lost, gained = (prompts.get((variant, direction), []) for direction in ("lost", "gained"))
        mine, other = passes.get(variant, {}), passes.get(reference, {})
        row = {
            "variant": variant,
            "is_reference": False,
            "bpw": bpw,
            "n": one["n"],
            "n_lost": len(lost),
            "n_gained": len(gained),
            "lost_prompts": ", ".join(lost),
            "gained_prompts": ", ".join(gained),
            **{name: one[name] for name in ("estimate", "ci_low", "ci_high", "p_value", "p_holm")},
            **{name: one[name] for name in ("verdict", "reason", "loss_bound")},
            **dict(zip(("seed_rate", "seed_rate_low", "seed_rate_high"), rates[variant], strict=True)),
            **_of_seeds(deltas.get((variant, "seed_pass_rate"), {})),
            **_of_pairs(disagreement(mine, other), disagreement(mine, mine)),
            "is_surprise": _is_surprise(one["estimate"], bpw, base_bpw),
        }
        rows.append({**row, "sentence": _sentence(row, reference)})
    return rows


def _deltas(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[tuple[str, str], Row]:
    cursor = con.execute(_DELTAS, [run_id])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {(row["variant"], row["metric"]): row for row in rows}


def _rates(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, tuple[float | None, ...]]:
    """Each variant's mean pass rate over seeds with its interval; None where there was one seed."""
    return {variant: tuple(rest) for variant, *rest in con.execute(_RATES, [run_id]).fetchall()}


def _of_seeds(found: Mapping[str, Any]) -> Row:
    names = {"seed_estimate": "estimate", "seed_low": "ci_low", "seed_high": "ci_high", "seed_n": "n"}
    names |= {"seed_p_holm": "p_holm", "seed_verdict": "verdict"}
    return {name: found.get(source) for name, source in names.items()}


def _of_pairs(cross: Disagreement | None, own: Disagreement | None) -> Row:
    return {
        "mean_lost": None if cross is None else cross.lost * cross.n_prompts,
        "mean_gained": None if cross is None else cross.gained * cross.n_prompts,
        "own_flips": None if own is None else own.flips * own.n_prompts,
    }


def _is_surprise(estimate: float | None, bpw: float | None, base_bpw: float | None) -> bool:
    return bool(estimate and estimate > 0 and bpw is not None and base_bpw is not None and bpw < base_bpw)


def _sentence(row: Row, reference: str) -> str:
    """What one variant's flips say: how many, whether chance explains them, and what seeds make of it."""
    if not row["n"]:
        return f"No prompt was checked for both it and {reference}."
    if row["verdict"] == NOT_COMPARABLE:
        return f"Not comparable with {reference}: {row['reason']}."
    parts = [_one_answer(row, reference)]
    if row["seed_n"]:
        parts.append(_over_seeds(row))
    elif row["is_surprise"] and row["verdict"] == BETTER:
        parts.append("Whether that survives other seeds is not known.")
    return " ".join(parts)


def _one_answer(row: Row, reference: str) -> str:
    n, lost, gained = int(row["n"]), row["n_lost"], row["n_gained"]
    if not lost and not gained:
        bound = words.at_most_points(stats.no_flip_bound(n))
        return f"No flip against {reference} on {n} prompts: that bounds a loss at {bound} (95 %), not at 0."
    flips = f"{gained} gained, {lost} lost of {n} prompts"
    if gained == lost:
        return f"{flips}: as many as it loses, so there is no win to explain."
    what = f"{abs(gained - lost)} {'more' if gained > lost else 'fewer'} than {reference}"
    if row["verdict"] == SAME:
        return f"{flips}, {what}: chance explains that (McNemar, p = {_p(row['p_holm'])})."
    return f"{flips}, {what}: more than chance explains (McNemar, p = {_p(row['p_holm'])})."


def _over_seeds(row: Row) -> str:
    effect = words.effect("seed_pass_rate", row["seed_estimate"])
    between = ""
    if row["seed_low"] is not None:
        between = f" ({100 * row['seed_low']:+.0f} to {100 * row['seed_high']:+.0f} points)"
    verdict = row["seed_verdict"]
    survives = ""
    if row["is_surprise"]:
        survives = ": the win survives" if verdict == BETTER else ": the win does not survive"
    return f"Over all seeds {effect}{between}, {verdict or 'no verdict'}{survives}."


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def _facts(con: duckdb.DuckDBPyConnection, run_id: str) -> FlipFacts | None:
    rows = [row for row in _rows(con, run_id) if row["n"]]
    run = con.execute(_RUN, [run_id]).fetchone() if rows else None
    if run is None:
        return None
    n_seeds, temperature, suite, n_answers = run
    variants = con.execute(_VARIANTS, [run_id]).fetchall()
    reference = str(next(variant for variant, is_reference, *_ in variants if is_reference))
    passes = read_passes(con, run_id).get(reference, {})
    own = disagreement(passes, passes)
    is_seeded = (n_seeds or 1) > 1 and n_answers > 1
    return FlipFacts(
        reference=reference,
        n_prompts=max(row["n"] for row in rows),
        n_seeds=n_seeds or 1,
        temperature=temperature,
        sentence=_headline(rows, reference, is_seeded=is_seeded),
        noise=_noise(reference, own, n_answers, is_seeded=is_seeded, temperature=temperature),
        reference_rate=_rate_words(reference, _rates(con, run_id)[reference]) if is_seeded else None,
        noise_flips=own.flips * own.n_prompts if own is not None and is_seeded else None,
        missing=None if is_seeded else _MISSING,
        command=None if is_seeded else _command(con.execute(_MODELS, [run_id]).fetchall(), suite),
    )


_MISSING = (
    "Each prompt was answered once. How often the same file would flip against itself, and so how many flips "
    "mean nothing, takes several seeds: in New benchmark under Seeds, or with a command."
)


def _headline(rows: list[Row], reference: str, *, is_seeded: bool) -> str:
    """Whether any win of a smaller variant holds."""
    wins = [row for row in rows if row["is_surprise"]]
    if not wins:
        return f"No smaller variant passes more prompts than {reference}."
    names = ", ".join(row["variant"] for row in wins)
    verdict = "seed_verdict" if is_seeded else "verdict"
    held = [row["variant"] for row in wins if row[verdict] == BETTER]
    pass_ = "pass" if len(wins) > 1 else "passes"
    passes = f"{names} {pass_} more prompts than {reference} on one answer each"
    if not held:
        return f"{passes}; chance explains {'each of these wins' if len(wins) > 1 else 'that win'}."
    if is_seeded:
        return f"{passes}; over all seeds it holds for {', '.join(held)}."
    return f"{passes}; for {', '.join(held)} chance does not explain it, and other seeds are yet to be tried."


def _noise(
    reference: str, own: Disagreement | None, n_answers: int, *, is_seeded: bool, temperature: float | None
) -> str:
    if own is None:
        return f"{reference} against itself: not known, since each prompt was answered once"
    flips = own.flips * own.n_prompts
    told = f"{words.three_digits(flips)} of {own.n_prompts} prompts flip"
    if is_seeded:
        return (
            f"{reference} against itself: from one seed to another {told} "
            f"(mean over {n_answers} seeds at temperature {temperature:g})"
        )
    return f"{reference} against itself: {told} between {n_answers} greedy answers, meant to be alike"


def _rate_words(variant: str, rate: tuple[float | None, ...]) -> str | None:
    mean, low, high = rate
    if mean is None:
        return None
    between = f" ({words.percent(low)} to {words.percent(high)})" if low is not None else ", no interval"
    return f"{variant} passes {words.percent(mean)}{between} over all seeds"


def _command(models: list[tuple[str, str]], suite: str | None) -> str:
    """The command that asks the same prompts with several seeds."""
    engines = " ".join(f"--engine {name}" for name in dict.fromkeys(engine for engine, _ in models))
    files = " ".join(f"--model {name}" for name in dict.fromkeys(model for _, model in models))
    return f"python -m liob_core run {files} {engines} --task suite --suite {suite} --seeds {SUGGESTED_SEEDS}"
