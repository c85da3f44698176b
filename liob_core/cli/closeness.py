"""What the command line prints of task `closeness`: its table, and what limits it."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape

from liob_core.analysis import words
from liob_core.analysis.closeness import closeness_facts, closeness_table
from liob_core.cli.output import out, print_table


def print_closeness(database: Path, run_id: str) -> None:
    """Print the closeness of a run's variants and what limits it; nothing where it was not measured."""
    table, facts = closeness_table(database, run_id), closeness_facts(database, run_id)
    if table.empty:
        return
    columns = [("variant", "left")]
    columns += [(name, "right") for name in ("PPL", "ln PPL ratio", "KLD", "same top", "against reference")]
    print_table("Closeness", columns, [_row(row) for row in table.to_dict("records")])
    if facts is None:
        return
    for sentence in facts.broken:
        out.print(f"[red]{escape(sentence)}[/red]", soft_wrap=True)
    out.print(escape(f"{facts.sentence}\n{facts.basis}.\n{facts.build}."), soft_wrap=True)
    for sentence in facts.notes:
        out.print(f"[yellow]{escape(sentence)}[/yellow]", soft_wrap=True)


def _row(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    """One variant: each figure over its two errors, the clustered one first."""
    if pd.isna(row["ppl"]):
        why = f"{row['ending']}: {row['reason']}"
        return (f"{escape(row['variant'])}\n{words.three_digits(row['bpw'])} bits", *["—"] * 4, escape(why))
    return (
        f"{escape(row['variant'])}\n{words.three_digits(row['bpw'])} bits",
        _figure(row, "ppl", "ppl", 4),
        _figure(row, "ln_ratio", "ln_ratio", 5),
        _figure(row, "kld_mean", "kld", 5),
        _figure(row, "same_top", "same_top", 4),
        escape(row["words"]),
    )


def _figure(row: Mapping[Hashable, Any], mean: str, error: str, digits: int) -> str:
    if pd.isna(row[mean]):
        return words.UNKNOWN
    clustered, iid = (
        words.UNKNOWN if pd.isna(row[name]) else f"{row[name]:.{digits}f}"
        for name in (f"{error}_se", f"{error}_se_iid")
    )
    return f"{row[mean]:.{digits}f}\n± {clustered} ({iid})"
