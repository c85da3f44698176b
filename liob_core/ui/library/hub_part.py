"""A Hub repository: its variants against this machine, before anything is downloaded."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis.words import UNKNOWN, memory
from liob_core.bench import downloads, ollama_transfers
from liob_core.bench.spec import DEFAULT_CTX
from liob_core.config import Settings
from liob_core.errors import LiobError
from liob_core.models.hub import list_variants
from liob_core.models.hub_offers import read_offers, sentences_of
from liob_core.models.hub_repo import HubRepo, parse_repo
from liob_core.models.memory import available_bytes, fits
from liob_core.models.ollama_pulls import pull_problem
from liob_core.store.journal import read_record
from liob_core.types import LoadSettings, MemoryNeed
from liob_core.ui.blocks import show_warnings
from liob_core.ui.guard import show_error
from liob_core.ui.library.local_part import has_ollama
from liob_core.ui.text import literal

FILE, OLLAMA = "Download the file", "Have Ollama pull it"


def show_hub(settings: Settings) -> None:
    """The field for a repository, its variants, and the button that downloads the chosen ones."""
    asked = st.text_input(
        "Repository on the Hugging Face Hub",
        key="liob_hub_repo",
        placeholder="Qwen/Qwen2.5-0.5B-Instruct-GGUF",
        help="OWNER/NAME, with @REVISION or :LABEL if wanted, or the address of its page.",
    ).strip()
    if not asked:
        st.caption("The headers of its files are read first: what each needs is known before a download.")
        return
    try:
        found = json.loads(_offers(asked, str(settings.cache_dir)))
    except LiobError as error:
        show_error(error)
        return
    repo: HubRepo = read_record(HubRepo, json.dumps(found["repo"]))
    if repo.gated:
        st.caption(f":material/lock: {literal(repo.repo_id)} is gated: it asks you to accept its terms.")
    chosen = _pick(repo, found["rows"])
    show_warnings(found["sentences"])
    variants = [repo.variants[index] for index in chosen]
    through_ollama = _pick_way() == OLLAMA
    problems = [pull_problem(repo, variant) for variant in variants] if through_ollama else []
    show_warnings([f"{problem} Download it instead." for problem in problems if problem])
    total = sum(variant.file_bytes for variant in variants)
    label = f"{'Pull' if through_ollama else 'Download'} {memory(total)}" if variants else "Download"
    is_ready = bool(variants) and not any(problems)
    if st.button(
        label, type="primary", icon=":material/download:", disabled=not is_ready, key="liob_hub_get"
    ):
        start = ollama_transfers.start_pull if through_ollama else downloads.start
        for variant in variants:
            start(repo, variant, settings)
        st.rerun()


def _pick_way() -> str:
    """Whether LIOB downloads the files, or Ollama pulls them; asked only where Ollama answers."""
    if not has_ollama():
        return FILE
    chosen = st.segmented_control(
        "How",
        [FILE, OLLAMA],
        default=FILE,
        key="liob_hub_way",
        help="A file runs on either engine, and its weights are known. What Ollama pulls only Ollama has, "
        "with the Hub's template; take one way for all variants that are compared.",
    )
    return chosen or FILE


@st.cache_data(ttl=600, max_entries=16, show_spinner="Reading the headers of its files")
def _offers(asked: str, cache_dir: str) -> str:
    """The repository, a row for each of its variants and what must be said beside them, as JSON."""
    repo = list_variants(parse_repo(asked))
    offers = read_offers(repo, LoadSettings(n_ctx=DEFAULT_CTX), Path(cache_dir))
    rows = [
        {
            "bpw": offer.model.bpw if offer.model else None,
            "need": asdict(offer.need) if offer.need else None,
            "reason": offer.reason or (offer.need.reason if offer.need else None),
        }
        for offer in offers
    ]
    return json.dumps({"repo": asdict(repo), "rows": rows, "sentences": sentences_of(repo, offers)})


def _pick(repo: HubRepo, rows: list[dict[str, Any]]) -> list[int]:
    """The places of the variants whose boxes are ticked."""
    available = available_bytes()
    needs = [MemoryNeed(**row["need"]) if row["need"] else None for row in rows]
    frame = pd.DataFrame(
        {
            "get": [False] * len(rows),
            "variant": [variant.label for variant in repo.variants],
            "bits": [row["bpw"] for row in rows],
            "size": [memory(variant.file_bytes) for variant in repo.variants],
            "files": [len(variant.files) for variant in repo.variants],
            "need": [need.need_bytes / 2**30 if need and need.need_bytes else None for need in needs],
            "verdict": [
                str(fits(need, available)) if need and need.need_bytes else f"{UNKNOWN} {row['reason'] or ''}"
                for need, row in zip(needs, rows, strict=True)
            ],
            "here": ["yes" if variant.is_cached else "" for variant in repo.variants],
        }
    )
    config = {
        "get": st.column_config.CheckboxColumn("Get", width="small"),
        "variant": st.column_config.TextColumn("Variant"),
        "bits": st.column_config.NumberColumn(
            "True bits", format="%.2f", help="8 x tensor bytes / parameters"
        ),
        "size": st.column_config.TextColumn("Size"),
        "files": st.column_config.NumberColumn("Files", width="small"),
        "need": st.column_config.ProgressColumn(
            f"Need of {memory(available)} free",
            min_value=0.0,
            max_value=available / 2**30,
            format="%.2f GiB",
            help=f"Memory at a context of {DEFAULT_CTX} tokens",
        ),
        "verdict": st.column_config.TextColumn("Memory"),
        "here": st.column_config.TextColumn("On disk", width="small"),
    }
    edited = st.data_editor(
        frame,
        hide_index=True,
        disabled=[name for name in frame.columns if name != "get"],
        column_config=config,
        key=f"liob_hub_table_{repo.repo_id}_{repo.commit}",
    )
    return [
        index
        for index, use in enumerate(edited["get"])
        if use and repo.variants[index].problem is None and not repo.variants[index].is_cached
    ]
