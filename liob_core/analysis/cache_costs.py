"""What a compressed KV cache saves in memory and costs in closeness, of the same weights."""

from pathlib import Path
from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.analysis.closeness import closeness_table

Row = dict[Any, Any]


def cache_costs(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant whose weights were evaluated with several types of KV cache; empty without any.

    Columns: variant, is_reference, bpw, kv_type, base (the variant with the largest cache of these weights),
    n_ctx (of the predicted cache, tokens), cache_bytes, memory_bytes (weights and cache), saved_bytes,
    saved_share (both of the cache, against the base), kld_mean, kld_low, kld_high, ln_ratio (to the run's
    reference), ln_cost (ln PPL ratio to the base), words (the cost with its verdict where the base is the
    reference).
    """
    table = closeness_table(db, run_id)
    if table.empty:
        return pd.DataFrame()
    rows: list[Row] = []
    for _, group in table.groupby("weights_sha256", sort=False):
        if group[["kv_type_k", "kv_type_v"]].drop_duplicates().shape[0] < 2:
            continue
        members = group.sort_values("need_kv_bytes", ascending=False, kind="stable").to_dict("records")
        base = next((row for row in members if row["is_reference"]), members[0])
        rows += [_row(member, base) for member in members]
    return pd.DataFrame(rows)


def cache_type(row: Row) -> str:
    """The type of a variant's KV cache, both where they differ."""
    same = row["kv_type_k"] == row["kv_type_v"]
    return str(row["kv_type_k"]) if same else f"{row['kv_type_k']} and {row['kv_type_v']}"


def _row(row: Row, base: Row) -> Row:
    saved = base["need_kv_bytes"] - row["need_kv_bytes"]
    is_base = row["variant"] == base["variant"]
    base_ln = 0.0 if _is_compared_with(base) else base["ln_ratio"]
    return {
        "variant": row["variant"],
        "is_reference": row["is_reference"],
        "bpw": row["bpw"],
        "kv_type": cache_type(row),
        "base": base["variant"],
        "n_ctx": row["context"],
        "cache_bytes": row["need_kv_bytes"],
        "memory_bytes": row["need_weights_bytes"] + row["need_kv_bytes"],
        "saved_bytes": 0 if is_base else saved,
        "saved_share": 0.0 if is_base else saved / base["need_kv_bytes"],
        "kld_mean": row["kld_mean"],
        "kld_low": row["kld_low"],
        "kld_high": row["kld_high"],
        "ln_ratio": row["ln_ratio"],
        "ln_cost": 0.0 if is_base else row["ln_ratio"] - base_ln,
        "words": _words(row, base, is_base=is_base, ln_cost=row["ln_ratio"] - base_ln),
    }


def _is_compared_with(row: Row) -> bool:
    """Whether a variant is what the closeness of its model's others is to."""
    return bool(pd.isna(row["ln_ratio"]) and not pd.isna(row["ppl"]))


def _words(row: Row, base: Row, *, is_base: bool, ln_cost: float) -> str:
    if is_base:
        return "the base"
    if _is_compared_with(base):
        return str(row["words"])
    if pd.isna(ln_cost):
        return words.UNKNOWN
    return f"{words.effect('ln_ratio', ln_cost)} (no interval: both are paired with the reference only)"
