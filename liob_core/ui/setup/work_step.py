"""Step 2: what each variant is asked to do."""

from dataclasses import dataclass

import streamlit as st

from liob_core.bench.closeness import check_add_on
from liob_core.bench.energy import energy_problem
from liob_core.bench.spec import PRESETS
from liob_core.config import SHIPPED_SUITES, Settings
from liob_core.errors import LiobError
from liob_core.suites.load import SuiteInfo, list_suites, load_suite, suite_from_text
from liob_core.types import ClosenessAsk, Suite, Task
from liob_core.ui.blocks import show_step
from liob_core.ui.guard import show_error
from liob_core.ui.setup.closeness_step import ClosenessChoice, pick_closeness
from liob_core.ui.setup.code_step import pick_code
from liob_core.ui.text import literal

PASTE = "Paste prompts"
_TASK_NAMES = {Task.SPEED: "Speed", Task.SUITE: "Answers to a suite", Task.CLOSENESS: "Closeness"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What each variant does: the tasks, the suite where it answers one, and the number of blocks."""

    tasks: tuple[Task, ...]
    suite: Suite | None
    n_blocks: int
    closeness: ClosenessAsk | None = None
    kv_types: tuple[str, ...] = ()  # each a variant of its own; none: as the load settings say
    allow_code: bool = False
    energy: bool = False


def pick_work(settings: Settings) -> Work:
    """The tasks, suite and number of blocks chosen."""
    with st.container(border=True):
        show_step(2, "What to ask", "tasks, prompts and how often")
        problem = _missing_add_on()
        tasks_there_are = [task for task in Task if task is not Task.CLOSENESS or problem is None]
        tasks = st.pills(
            "Tasks",
            tasks_there_are,
            selection_mode="multi",
            default=[Task.SPEED, Task.SUITE],
            format_func=_TASK_NAMES.__getitem__,
            key="liob_new_tasks",
            help="Speed: fixed shapes, timed in blocks. Answers: every prompt once, graded where it can be. "
            "Closeness: perplexity and KL divergence from the reference on a text.",
        )
        if problem is not None:
            st.caption(f":material/extension: {literal(problem)}")
        suite = _pick_suite(settings) if Task.SUITE in tasks else None
        allow_code = pick_code(suite, settings)
        closeness = pick_closeness(settings) if Task.CLOSENESS in tasks else ClosenessChoice()
        preset = st.segmented_control(
            "Blocks",
            list(PRESETS),
            default="quick",
            format_func=lambda name: f"{name.capitalize()} · {PRESETS[name]}",
            key="liob_new_preset",
            help="One block is one load of each variant and one repetition. Intervals are over blocks.",
        )
        energy = Task.SPEED in tasks and _has_energy() and _pick_energy()
        return Work(
            tasks=tuple(tasks),
            suite=suite,
            n_blocks=PRESETS[preset or "quick"],
            closeness=closeness.ask,
            kv_types=closeness.kv_types,
            allow_code=allow_code,
            energy=energy,
        )


def _pick_energy() -> bool:
    return st.checkbox(
        "Measure the energy of speed",
        value=True,
        key="liob_new_energy",
        help="In each block every shape runs once more for at least 10 s, with a rest before and after.",
    )


@st.cache_data(ttl=60, max_entries=1, show_spinner=False)
def _has_energy() -> bool:
    """Whether an energy counter can be read here; looking for devices takes a moment."""
    return energy_problem() is None


def _missing_add_on() -> str | None:
    """The sentence that says how to add what closeness needs; None where it is there."""
    try:
        check_add_on()
    except LiobError as error:
        return str(error)
    return None


def _pick_suite(settings: Settings) -> Suite | None:
    folders = [SHIPPED_SUITES, settings.data_dir / "suites"]
    infos = {info.name: info for info in list_suites(list(dict.fromkeys(folders)))}
    names = [*(name for name, info in infos.items() if info.error is None), PASTE]
    start = names.index("quick") if "quick" in names else 0
    chosen = st.selectbox(
        "Suite",
        names,
        index=start,
        format_func=lambda name: _suite_name(infos.get(name)),
        key="liob_new_suite",
    )
    for info in infos.values():
        if info.error is not None:
            st.caption(f":material/error: {literal(info.error)}")
    try:
        if chosen != PASTE:
            return load_suite(str(infos[chosen].path), folders)
        text = st.text_area(
            "Prompts, separated by a line of ---",
            key="liob_new_prompts",
            height=140,
            placeholder="Why is the sky blue?\n---\nWrite a haiku about rain.",
        )
        return suite_from_text(text) if text.strip() else None
    except LiobError as error:
        show_error(error)
        return None


def _suite_name(info: SuiteInfo | None) -> str:
    if info is None:
        return PASTE
    checked = f", {info.n_checked} with a check" if info.n_checked else ""
    return f"{info.name} · {info.n_prompts} prompts{checked}"
