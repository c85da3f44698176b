"""What `show RUN --flips` prints: whether a smaller variant's win is more than noise."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape

from liob_core.analysis import words
from liob_core.analysis.flips import flip_facts, flip_table
from liob_core.cli.output import out, print_json, print_table
from liob_core.errors import UsageError


def print_flips(database: Path, run_id: str, *, as_json: bool) -> None:
    """Print a run's flips against the reference; raises UsageError where nothing can be compared."""
    facts, table = flip_facts(database, run_id), flip_table(database, run_id)
    if facts is None:
        raise UsageError(
            f"Run {run_id} has no checked answers of two variants; run a suite with checks, such as `core`."
        )
    if as_json:
        print_json({"run_id": run_id, "facts": facts, "variants": table})
        return
    heads = ("lost", "gained", "p (Holm)", "against itself", "over all seeds", "verdict")
    columns = [("variant", "left"), *((head, "right") for head in heads)]
    print_table(f"Run {run_id}: flips", columns, [_row(row) for row in table.to_dict("records")])
    out.print(escape(facts.sentence), soft_wrap=True)
    for sentence in (facts.noise, facts.reference_rate):
        if sentence:
            out.print(escape(f"{sentence}."), soft_wrap=True)
    for row in table.to_dict("records"):
        out.print(escape(f"{row['variant']}: {row['sentence']}"), soft_wrap=True)
    if facts.missing and facts.command:
        out.print(f"[yellow]{escape(facts.missing)}[/yellow]\n{escape(facts.command)}", soft_wrap=True)


def _row(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    seeds = words.UNKNOWN
    if pd.notna(row["seed_estimate"]):
        seeds = f"{words.percent(row['seed_rate'])}\n{100 * row['seed_estimate']:+.1f} points"
    verdict = row["seed_verdict"] if isinstance(row["seed_verdict"], str) else row["verdict"]
    return (
        escape(str(row["variant"])),
        f"{row['n_lost']} of {row['n']}",
        f"{row['n_gained']} of {row['n']}",
        words.UNKNOWN if pd.isna(row["p_holm"]) else f"{row['p_holm']:.3f}",
        words.UNKNOWN if pd.isna(row["own_flips"]) else words.three_digits(row["own_flips"]),
        seeds,
        verdict if isinstance(verdict, str) else "no verdict",
    )
