"""What every page about one run begins with: its heading, its facts, and the notes its pictures carry."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from liob_core.analysis.runs import RunFacts
from liob_core.charts.theme import Caption
from liob_core.config import Settings, load_settings
from liob_core.rendering import run_words
from liob_core.ui import reads
from liob_core.ui.blocks import show_empty, show_heading, show_warnings
from liob_core.ui.source import choose, show_origin
from liob_core.ui.text import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The run a page shows, where it is kept, and what it was."""

    database: Path
    run_id: str
    facts: RunFacts
    is_sample: bool

    def frame(self, question: str, *keys: str | int) -> pd.DataFrame:
        """The answer to one of the named questions about this run."""
        return reads.frame(question, self.database, self.run_id, *keys)

    @property
    def kicker(self) -> str:
        """The run, its machine and its day in one line."""
        return run_words.kicker(self.facts)

    @property
    def origin(self) -> tuple[str, ...]:
        """The lines inside a picture that tell where it comes from."""
        return run_words.origin(self.facts)

    @property
    def file_stem(self) -> str:
        """How the names of this run's downloads begin."""
        return f"liob-{self.run_id}"

    def caption(self, *notes: str) -> Caption:
        """Lines inside a picture that keep it honest when it travels: what, n, machine, date, version."""
        return Caption(notes=notes, origin=self.origin)


def open_run(empty_title: str) -> RunView | None:
    """The chosen run; where there is none, the page has said what to do instead."""
    settings: Settings = load_settings()
    chosen = choose(settings)
    if chosen is None:
        show_heading("Nothing measured yet", empty_title)
        show_empty(
            "Start with a first benchmark",
            "Pick the quantized variants of a model, or take the sample model. Results appear here.",
        )
        return None
    facts = reads.facts(chosen.database, chosen.run_id)
    view = RunView(
        database=chosen.database, run_id=chosen.run_id, facts=facts, is_sample=chosen.source.is_sample
    )
    show_origin(chosen)
    return view


def show_caveats(view: RunView) -> None:
    """What could make the numbers wrong, and how the run was made."""
    sentences = reads.warnings(view.database, view.run_id)
    st.subheader("What could make this wrong", anchor=False)
    if sentences:
        show_warnings(sentences)
    else:
        st.markdown("Nothing that LIOB looks for: no failures, no busy neighbours, no uneven blocks.")
    st.caption(literal(run_words.how(view.facts)))
