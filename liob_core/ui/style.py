"""The few styles that Streamlit has no word for: tables, verdicts, progress cells, answers."""

import streamlit as st

from liob_core.charts.theme import Look, look_of

_CSS = """<style>
.stMainBlockContainer { padding: 2.6rem 3.2rem 4rem; max-width: 1240px; }
.liob-scroll { overflow-x: auto; }
.liob-table { border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
.liob-table caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.liob-table th { font-weight: 500; color: MUTED; white-space: nowrap; font-size: .84rem;
  border-bottom: 1px solid LINE; padding: .35rem .45rem; vertical-align: bottom; }
.liob-table .help { border-bottom: 1px dotted MUTED; cursor: help; }
.liob-table td { border-bottom: 1px solid LINE; padding: .5rem .45rem; vertical-align: top;
  white-space: nowrap; }
.liob-table th:first-child, .liob-table td:first-child { position: sticky; left: 0; background: PAGE;
  padding-left: .1rem; font-weight: 600; }
.liob-table td:first-child .note { font-weight: 400; }
.liob-table .num { text-align: right; }
.liob-table .txt { text-align: left; }
.liob-table .note { color: MUTED; font-size: .82rem; white-space: normal; }
.liob-table .num .note { width: max-content; max-width: 7.6rem; margin-left: auto; }
.swatch { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .5rem; }
.swatch.diamond { border-radius: 1px; transform: rotate(45deg) scale(.88); }
.liob-better { color: BETTER; } .liob-worse { color: WORSE; } .liob-same, .liob-unknown { color: SAME; }
.liob-better b, .liob-worse b { font-size: .75em; }
.liob-grid td { padding: .4rem .7rem; }
.liob-bar { background: GRID; border-radius: 3px; height: .5rem; min-width: 5.5rem; overflow: hidden;
  display: flex; margin-top: .3rem; }
.liob-bar i { background: FILL; display: block; }
.liob-bar i.bad { background: WORSE; }
.liob-text { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .93rem; line-height: 1.45;
  max-height: 34rem; overflow-y: auto; }
.liob-text pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.liob-text mark { background: MARK; color: inherit; border-radius: 2px; padding: 0 1px;
  border-bottom: 2px solid ACCENT; }
.liob-text em { color: MUTED; }
.liob-writing { min-height: 6rem; max-height: 14rem; border-left: 3px solid FILL; padding-left: .8rem; }
.liob-answer { border-top: 3px solid LINE; padding-top: .5rem; line-height: 1.4; font-size: .92rem; }
.liob-answer .name { font-weight: 600; font-size: 1.02rem; }
.liob-answer .name span { font-weight: 400; color: MUTED; font-size: .85rem; }
.liob-answer .note { color: MUTED; font-size: .82rem; overflow-wrap: anywhere; }
.liob-turn { border-left: 3px solid LINE; padding-left: .8rem; }
.liob-turn span { color: MUTED; font-size: .82rem; }
.liob-finding { display: grid; grid-template-columns: 6rem 1fr; gap: .6rem; line-height: 1.4;
  font-size: .95rem; }
.liob-finding .note { color: MUTED; font-size: .86rem; overflow-wrap: anywhere; }
[data-testid="stCaptionContainer"] { opacity: 1 !important; }
[data-testid="stCaptionContainer"] p { color: MUTED; }
[data-testid="stSliderThumbValue"] p, [data-selected="true"] p { color: INK; }
.rendered { white-space: normal; }
.rendered pre { background: GRID; padding: .6rem; border-radius: 4px; font-size: .85rem; }
.liob-kicker { color: MUTED; font-size: .9rem; margin-bottom: -1rem; }
.stMainBlockContainer h1 { padding-top: 0; text-wrap: balance; line-height: 1.2; }
.liob-step { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .6rem;
  font-size: 1.15rem; font-weight: 600; }
.liob-step b { color: PRIMARY; font-variant-numeric: tabular-nums; }
.liob-step span { color: MUTED; font-weight: 400; font-size: .9rem; }
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 4.4rem 1rem 4rem; }
  h1 { font-size: 1.45rem !important; }
  .liob-bar { min-width: 4rem; }
  .liob-table td.txt:last-child .note { min-width: 13rem; }
  .stButtonGroup > div { flex-wrap: wrap; row-gap: .3rem; }
}
</style>"""


def current_look() -> Look:
    """The look of the reader's own appearance setting."""
    return look_of(st.context.theme.type)


def apply_style() -> None:
    """Put the styles of the current look on the page."""
    look = current_look()
    css = _CSS
    colours = {
        "MUTED": look.muted,
        "INK": look.ink,
        "LINE": look.grid,
        "PAGE": look.page,
        "BETTER": look.better,
        "WORSE": look.worse,
        "SAME": look.same,
        "GRID": look.grid,
        "FILL": look.ramp[2],
        "PRIMARY": look.ramp[1],
        "MARK": look.accent + "2b",
        "ACCENT": look.accent,
    }
    for name, colour in colours.items():
        css = css.replace(name, colour)
    st.html(css)
