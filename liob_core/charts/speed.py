"""How fast: one dot with its interval per variant, the blocks behind it, and every request's latency."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Ladder, Look, dressed, row_height
from liob_core.metrics import METRICS

# The one rate that the memory-bandwidth ceiling is worked out for.
CEILING_OF = ("decode_tps", "chat512")
PERCENTILES = ("p50", "p90", "p99")


def rate_dots(
    table: pd.DataFrame, blocks: pd.DataFrame, look: Look, *, metric: str, shape: str, caption: Caption
) -> Any:
    """Dots in tok/s with 95 % interval lines, each block a tick, many bits on top.

    `table` is `results_table`, `blocks` is `block_rates`; `metric` is decode_tps or prefill_tps and `shape`
    one of `speed`, or "suite" where only that ran. Where an interval is unknown there is no line.
    """
    ladder = Ladder.of(table, look)
    rates = _rates(table, metric, shape)
    single = blocks[blocks["shape"] == shape] if shape != "suite" else blocks[blocks["task"] == "suite"]
    single = single[["variant", "block", metric]].rename(columns={metric: "value"}).dropna()
    x = alt.X("value:Q", title="tok/s", scale=alt.Scale(zero=True, nice=True))
    tip = [alt.Tooltip("variant:N", title="Variant"), alt.Tooltip("words:N", title=METRICS[metric].label)]
    lines = (
        alt.Chart(rates.dropna(subset=["low", "high"]))
        .mark_rule(strokeWidth=3, opacity=0.55)
        .encode(y=ladder.y, x=alt.X("low:Q", title="tok/s"), x2="high:Q", color=ladder.colour, tooltip=tip)
    )
    ticks = (
        alt.Chart(single)
        .mark_tick(thickness=1.5, size=14, opacity=0.5)
        .encode(
            y=ladder.y,
            x=x,
            color=ladder.colour,
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("block:O", title="Block"),
                alt.Tooltip("value:Q", title="tok/s", format=".6~r"),
            ],
        )
    )
    known = alt.Chart(rates.dropna(subset=["value"])).encode(y=ladder.y, x=x, tooltip=tip)
    dots = known.mark_point(size=130, filled=True, opacity=1).encode(color=ladder.colour, shape=ladder.shape)
    values = known.mark_text(align="left", dx=11, dy=-11).encode(text="shown:N", color=alt.value(look.ink))
    title = f"{METRICS[metric].label}, {shape}"
    layers = [lines, ticks, dots, values]
    ceilings = _ceilings(table) if (metric, shape) == CEILING_OF else table[:0]
    if len(ceilings):
        layers.insert(0, _ceiling_marks(ceilings, ladder, look))
    return dressed(layers, look, height=row_height(len(table)), title=title, caption=caption)


def _ceilings(table: pd.DataFrame) -> pd.DataFrame:
    """Variant, ceiling in tok/s, and a sentence, of the variants whose memory-bandwidth ceiling is known."""
    known = table.dropna(subset=["ceiling_tps"])[["variant", "ceiling_tps", "roofline_share"]]
    return known.assign(
        words=[
            f"{words.value('ceiling_tps', row['ceiling_tps'])}, of which "
            f"{words.value('roofline_share', row['roofline_share'])} are reached"
            for row in known.to_dict("records")
        ]
    )


def _ceiling_marks(ceilings: pd.DataFrame, ladder: Ladder, look: Look) -> Any:
    return (
        alt.Chart(ceilings)
        .mark_tick(thickness=2, size=30, color=look.muted)
        .encode(
            y=ladder.y,
            x=alt.X("ceiling_tps:Q", title="tok/s"),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("words:N", title=METRICS["ceiling_tps"].label),
            ],
        )
    )


def _rates(table: pd.DataFrame, metric: str, shape: str) -> pd.DataFrame:
    """Variant, value, low, high, and the sentence for each, of the columns that hold that shape's rates."""
    name = metric if shape == "suite" else f"{shape}_{metric}"
    rates = pd.DataFrame(
        {
            "variant": table["variant"],
            "value": table[name].astype(float),
            "low": table[f"{name}_ci_low"].astype(float),
            "high": table[f"{name}_ci_high"].astype(float),
        }
    )
    rates["shown"] = [words.three_digits(value) for value in rates["value"]]
    rates["words"] = [
        f"{words.value(metric, value)} ({words.interval(metric, low, high) or 'no interval'})"
        for value, low, high in zip(rates["value"], rates["low"], rates["high"], strict=True)
    ]
    return rates


def latency_strip(
    table: pd.DataFrame, samples: pd.DataFrame, look: Look, *, metric: str, caption: Caption
) -> Any:
    """Every request as a tick, each variant's median as a mark and its percentiles in words, in ms.

    `samples` is `latencies`, at most 2,000 rows; `metric` is ttft_ms or tpot_ms.
    """
    ladder = Ladder.of(table, look)
    known = samples[["variant", metric]].rename(columns={metric: "value"}).dropna()
    whole = _percentiles(samples, metric)
    x = alt.X("value:Q", title="ms", scale=alt.Scale(zero=True))
    ticks = (
        alt.Chart(known)
        .mark_tick(thickness=1.5, size=18, opacity=0.4)
        .encode(
            y=ladder.y,
            x=x,
            color=ladder.colour,
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("value:Q", title="ms", format=".6~r"),
            ],
        )
    )
    told = alt.Chart(whole).encode(
        y=ladder.y,
        tooltip=[
            alt.Tooltip("variant:N", title="Variant"),
            alt.Tooltip("words:N", title=METRICS[metric].label),
            alt.Tooltip("n:Q", title="Requests", format=","),
        ],
    )
    middle = told.mark_point(size=120, filled=True, opacity=1, stroke=look.page, strokeWidth=1.5).encode(
        x=x, color=ladder.colour, shape=ladder.shape
    )
    # At the end of the row, above its ticks, so that a number never lies on one.
    text = told.mark_text(align="right", dy=-15, fontSize=11).encode(
        x=alt.value(alt.ExprRef("width")), text="words:N", color=alt.value(look.muted)
    )
    title = METRICS[metric].label
    return dressed([ticks, middle, text], look, height=row_height(len(table)), title=title, caption=caption)


def _percentiles(samples: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One row a variant: n, its median in ms, and the percentiles that n allows, in words."""
    columns = {f"{metric}_n": "n", **{f"{metric}_{name}": name for name in PERCENTILES}}
    whole = samples.drop_duplicates("variant")[["variant", *columns]].rename(columns=columns)
    whole = whole.dropna(subset=["p50"])
    return whole.assign(
        value=whole["p50"].astype(float),
        words=[
            ", ".join(
                f"{name} {words.seconds(row[name] / 1e3)}" for name in PERCENTILES if pd.notna(row[name])
            )
            for row in whole.to_dict("records")
        ],
    )[["variant", "n", "value", "words"]]
