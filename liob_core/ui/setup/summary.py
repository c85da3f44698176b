"""What was chosen, how long it will take, what speaks against it, and the one button."""

from dataclasses import replace

import streamlit as st

from liob_core.bench import jobs
from liob_core.bench.choosing import with_digests
from liob_core.bench.estimate import estimate, spell_duration
from liob_core.bench.spec import Choices, make_spec
from liob_core.config import Settings
from liob_core.errors import LiobError, UsageError
from liob_core.models.variant import unique_labels
from liob_core.monitor.machine import busy_neighbours, thread_warning
from liob_core.types import RunSpec, Task
from liob_core.ui.blocks import show_warnings
from liob_core.ui.guard import show_error
from liob_core.ui.nav import button_to, open_page
from liob_core.ui.setup.closeness_step import reference_name, with_caches
from liob_core.ui.setup.limits_step import RunLimits
from liob_core.ui.setup.variants_step import Choice
from liob_core.ui.setup.work_step import Work
from liob_core.ui.text import literal


def show_summary(settings: Settings, choice: Choice, work: Work, limits: RunLimits) -> None:
    """The estimate as the choices stand, warnings, and the button that starts the run."""
    with st.container(border=True):
        spec = _draft(settings, choice, work, limits)
        if spec is None:
            st.button("Start benchmark", type="primary", disabled=True, width="stretch", key="liob_start")
            return
        _show_estimate(spec, settings)
        running = jobs.running(settings)
        if running is not None:
            st.info(
                f"{literal(running.title)} is at work. Two runs at once would spoil both.",
                icon=":material/hourglass_top:",
            )
            button_to("run", "Watch it", icon=":material/play_circle:", run=running.run_id)
        start = st.button(
            "Start benchmark",
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            disabled=running is not None,
            key="liob_start",
        )
        show_warnings(_warnings(spec))
        if start:
            _start(spec, settings)


def _draft(settings: Settings, choice: Choice, work: Work, limits: RunLimits) -> RunSpec | None:
    """The spec as the choices stand; None, with the next thing to do, where it cannot be run yet."""
    try:
        engines = choice.engines
        if "llama-server" in engines.names and engines.url is None:
            raise UsageError("Name the address of your llama-server.")
        if "ollama" in engines.names and not engines.has_ollama:
            raise UsageError("Start Ollama, or choose another engine.")
        if not choice.variants:
            raise UsageError("Take the sample model in step 1, or name a GGUF file there and tick it.")
        if Task.SUITE in work.tasks and work.suite is None:
            raise UsageError("Paste a prompt in step 2, or choose another suite there.")
        return make_spec(
            Choices(
                engine=engines.names[0],
                engine_url=engines.url,
                variants=tuple(with_caches(choice.variants, work.kv_types)),
                tasks=work.tasks,
                suite=work.suite,
                closeness=work.closeness,
                reference=reference_name(choice.variants, choice.reference)
                if work.kv_types
                else choice.reference,
                n_blocks=work.n_blocks,
                max_tokens=limits.max_tokens,
                seed=limits.seed,
                n_seeds=limits.seeds.n_seeds if Task.SUITE in work.tasks else 1,
                temperature=limits.seeds.temperature if Task.SUITE in work.tasks else None,
                monitor_hz=settings.monitor_hz,
                prompt_mode=limits.prompt_mode,
                allow_code=work.allow_code,
                energy=work.energy,
            )
        )
    except LiobError as error:
        st.caption("To do")
        st.markdown(literal(str(error)))
        return None


def _show_estimate(spec: RunSpec, settings: Settings) -> None:
    found = estimate(spec, settings.database)
    st.caption("It will take")
    st.subheader(f"About {spell_duration(found.seconds)}", anchor=False)
    st.caption(
        "From earlier runs here." if found.is_measured else "A rough guess: not all variants ran here."
    )
    st.markdown(literal(_in_words(spec)))
    if found.closeness is not None:
        st.caption(literal(f"Closeness: {found.closeness}"))
    for sentence in found.detectable:
        st.caption(literal(sentence))


def _in_words(spec: RunSpec) -> str:
    parts = [f"{len(spec.variants)} variants" if len(spec.variants) > 1 else "1 variant"]
    if Task.SPEED in spec.tasks:
        energy = " with energy" if spec.energy else ""
        parts.append(f"speed in {spec.n_blocks} blocks{energy}")
    if spec.suite is not None:
        seeds = f" with {spec.n_seeds} seeds" if spec.n_seeds > 1 else ""
        parts.append(f"{len(spec.suite.prompts)} prompts of {spec.suite.name}{seeds}")
    if spec.closeness is not None:
        parts.append(f"closeness on {spec.closeness.text_name}")
    threads = spec.variants[0].load_settings.threads
    parts.append(f"{threads} threads" if threads > 1 else "1 thread")
    return " · ".join(parts)


def _warnings(spec: RunSpec) -> list[str]:
    found = [thread_warning(spec.variants[0].load_settings.threads), _neighbour_warning()]
    if len(spec.variants) == 1:
        found.append("One variant alone: there is nothing to compare it with.")
    return [warning for warning in found if warning]


@st.cache_data(ttl=20, max_entries=1, show_spinner=False)
def _neighbour_warning() -> str | None:
    """Who else keeps the machine busy; looking takes a moment, so it is kept a few seconds."""
    busy = busy_neighbours()
    if not busy:
        return None
    names = ", ".join(f"{neighbour.name} ({100 * neighbour.cpu_share:.0f} % of a core)" for neighbour in busy)
    return f"Other programs are busy: {names}. Samples measured beside them are kept out of verdicts."


def _start(draft: RunSpec, settings: Settings) -> None:
    """Read the files whole for their digests, start the worker, and leave for its page."""
    with st.spinner("Reading the files for their digests; large ones take a minute"):
        variants = tuple(with_digests(variant, settings.cache_dir) for variant in draft.variants)
    try:
        unique_labels(variants)  # only now it is known which weights are the same
        run_id = jobs.start(replace(draft, variants=variants), settings)
    except LiobError as error:
        show_error(error)
        return
    open_page("run", run=run_id)
