"""Start a judge on a finished run from the page, watch it, cancel it. Never part of a hosted app."""

import shlex
from dataclasses import dataclass

import streamlit as st

from liob_core.bench import judge_jobs
from liob_core.bench.estimate import spell_duration
from liob_core.bench.judge_source import ensure_on_ollama
from liob_core.bench.judging import DEFAULT_OLLAMA_JUDGE, JudgingSpec, make_judge
from liob_core.bench.status import RunStatus
from liob_core.config import Settings, load_settings
from liob_core.errors import LiobError, UsageError
from liob_core.types import JudgeMode
from liob_core.ui.guard import guarded, show_error
from liob_core.ui.run_view import RunView
from liob_core.ui.text import literal

REFRESH_S = 2
_ENGINES = {"ollama": "Ollama", "embedded": "Embedded llama.cpp", "llama-server": "Your llama-server"}
_MODES = {JudgeMode.SINGLE: "Score each answer", JudgeMode.PAIRWISE: "Compare with the reference"}
_SIZES = {DEFAULT_OLLAMA_JUDGE: "2.0 GB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the form holds."""

    engine: str
    model: str
    url: str | None
    mode: JudgeMode
    judge_all: bool
    may_pull: bool


def offer_judging(view: RunView) -> None:
    """The judge at work, or the form that starts one; nothing where the run's folder is not here."""
    settings = load_settings()
    if view.facts.suite is None or not (settings.runs_dir / view.run_id / "spec.json").is_file():
        return
    status = judge_jobs.read_status(view.run_id, settings)
    if status is not None and status.is_live:
        st.fragment(guarded(_show_progress), run_every=REFRESH_S)(view.run_id, settings)
        return
    if status is not None and status.state == "failed" and status.reason:
        st.warning(literal(f"The last judging failed: {status.reason}"), icon=":material/gavel:")
    if status is not None and status.state == "cancelled" and status.reason:
        st.caption(literal(f"{status.title}: {status.reason}"))
    has_judge = not view.frame("judges").empty
    title = "Ask another judge" if has_judge else "Have the answers judged"
    with st.expander(title, icon=":material/gavel:", expanded=not has_judge):
        _show_form(view, settings)


def _show_form(view: RunView, settings: Settings) -> None:
    asked = _fields(has_pairs=view.facts.n_variants > 1)
    st.code(_command(view.run_id, asked), language="bash", wrap_lines=True)
    start = st.button("Start judging", type="primary", icon=":material/gavel:", key="liob_judge_start")
    st.caption(
        "It first answers questions whose right answer is known; below 80 % right it gives no verdict, which "
        "small models do. The larger the judge, the better. No measurement runs meanwhile."
    )
    if start:
        try:
            n_answers = _start(view.run_id, asked, settings)
        except LiobError as error:
            show_error(error)
            return
        if n_answers == 0:
            st.info("This judge has looked at every answer already.", icon=":material/check_circle:")
            return
        st.rerun()


def _fields(*, has_pairs: bool) -> _Asked:
    modes = list(_MODES) if has_pairs else [JudgeMode.SINGLE]
    left, right = st.columns(2)
    engine = left.segmented_control(
        "Judge's engine",
        list(_ENGINES),
        default="embedded",
        format_func=_ENGINES.__getitem__,
        key="liob_judge_engine",
    )
    mode = right.segmented_control(
        "What it does", modes, default=modes[0], format_func=_MODES.__getitem__, key="liob_judge_mode"
    )
    engine = engine or "embedded"
    is_ollama = engine == "ollama"
    model = st.text_input(
        "Judge's model",
        value=DEFAULT_OLLAMA_JUDGE if is_ollama else "",
        placeholder="" if is_ollama else "/home/me/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        key=f"liob_judge_model_{engine}",
        help="A model's name on Ollama" if is_ollama else "A GGUF file: any model, the larger the better",
    ).strip()
    url = None
    if engine != "embedded":
        url = (
            st.text_input("Its address, where it is not the usual one", key="liob_judge_url").strip() or None
        )
    may_pull = False
    with st.container(horizontal=True):
        judge_all = st.checkbox(
            "Prompts without a rubric too", key="liob_judge_all", help="A general rubric grades them"
        )
        if is_ollama:
            size = f" ({_SIZES[model]})" if model in _SIZES else ""
            may_pull = st.checkbox(f"Fetch it where Ollama lacks it{size}", key="liob_judge_pull")
    return _Asked(
        engine=engine,
        model=model,
        url=url,
        mode=mode or modes[0],
        judge_all=judge_all,
        may_pull=may_pull,
    )


def _command(run_id: str, asked: _Asked) -> str:
    model = asked.model or "MODEL.gguf"
    parts = ["python -m liob_core judge", run_id, f"--judge-engine {asked.engine}"]
    parts.append(f"--judge-model {shlex.quote(model)}")
    parts += [f"--judge-url {shlex.quote(asked.url)}"] if asked.url else []
    parts += ["--pairwise"] if asked.mode is JudgeMode.PAIRWISE else []
    parts += ["--all"] if asked.judge_all else []
    parts += ["--pull"] if asked.may_pull else []
    return " ".join(parts)


def _start(run_id: str, asked: _Asked, settings: Settings) -> int:
    """How many answers the judge now looks at."""
    if not asked.model:
        raise UsageError("Name the judge's model: a GGUF file, the larger the better.")
    if asked.engine == "ollama":
        with st.status(f"Looking for {literal(asked.model)} on Ollama") as line:
            ensure_on_ollama(
                asked.model,
                asked.url,
                may_pull=asked.may_pull,
                progress=lambda words, *_: line.update(label=literal(f"{asked.model}: {words}")),
            )
    with st.spinner("Reading the judge's model; a large file takes a minute"):
        judge = make_judge(asked.engine, asked.model, settings.cache_dir, threads=settings.threads)
    spec = JudgingSpec(
        run_id=run_id,
        judge=judge,
        engine=asked.engine,
        engine_url=asked.url,
        mode=asked.mode,
        judge_all=asked.judge_all,
    )
    return judge_jobs.start(spec, settings)


def _show_progress(run_id: str, settings: Settings) -> None:
    status = judge_jobs.read_status(run_id, settings)
    if status is None or not status.is_live:
        st.rerun()  # the whole page: what it said is in the database now
    share = min(1.0, status.n_done / status.n_cells) if status.n_cells else 0.0
    st.progress(share, text=literal(_doing(status)))
    if st.button("Cancel", icon=":material/stop_circle:", key="liob_judge_cancel"):
        judge_jobs.cancel(run_id, settings)
        st.toast("Cancelling; every opinion is kept.")


def _doing(status: RunStatus) -> str:
    """What the judge is doing, how far it is, how long it has to go."""
    left = f"about {spell_duration(status.eta_s)} left" if status.eta_s is not None else ""
    now = status.activity or " ".join(filter(None, (status.current_variant, status.current_prompt)))
    done = f"{status.n_done} of {status.n_cells}" if status.n_cells else ""
    return " · ".join(part for part in (status.title, done, left, now) if part)
