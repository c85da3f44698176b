"""What an engine told of a request and a load, and where a file came from, as columns of the views."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from liob_core.store import database, rows
from liob_core.store.journal import Journal
from liob_core.types import Counters
from tests.unit.store.builders import make_load, make_run_folder, make_sample, make_spec

COMMIT = "1234567890abcdef1234567890abcdef12345678"


def asked(tmp_path: Path, sql: str, *records: Any) -> list[tuple[Any, ...]]:
    run_dir = make_run_folder(tmp_path, n_samples=0)
    with Journal(run_dir) as journal:
        for record in records:
            journal.append(record)
    path = tmp_path / "liob.duckdb"
    with database.write(path) as con:
        database.ingest(con, run_dir)
    with database.read(path) as con:
        return con.execute(sql).fetchall()


def test_engines_own_total_is_stored_and_absent_is_told_from_zero(tmp_path: Path) -> None:
    told = Counters(engine_total_ms=1500.0, engine_load_ms=30.0, cached_tokens=0)
    found = asked(
        tmp_path,
        "SELECT engine_total_ms, ttft_without_load_ms, cached_tokens FROM samples ORDER BY sample_id",
        make_sample(1, counters=told),
        make_sample(2, counters=Counters()),
    )
    assert found == [(1500.0, 70.0, 0), (None, None, None)]  # 100 ms to the first token, 30 of them loading


def test_what_was_offloaded_is_read_from_what_the_engine_told(tmp_path: Path) -> None:
    told = [
        {"gpu_layers": 0, "gpu_share": 0.0, "gpu_share_reason": "a CPU build"},
        {"gpu_share": 0.62},
        {"gpu_layers": "all"},
    ]
    loads = [make_load(load_id=f"l{place}", effective=one) for place, one in enumerate(told)]
    found = asked(
        tmp_path,
        "SELECT gpu_layers_used, gpu_share, offload_reason FROM loads "
        "WHERE load_id LIKE 'l%' ORDER BY load_id",
        *loads,
    )
    assert found == [(0, 0.0, "a CPU build"), (None, 0.62, None), (None, None, None)]


def test_run_names_all_its_engines_and_their_versions(tmp_path: Path) -> None:
    spec = make_spec()
    first, second = spec.variants
    mixed = replace(spec, variants=(first, replace(second, engine="ollama")))
    assert rows.run_row(spec, None, None)["engine"] == "embedded"
    assert rows.run_row(mixed, None, None)["engine"] == "embedded, ollama"
    loads = [make_load(load_id=name, engine_version=name) for name in ("xllamacpp 1", "ollama 2", "ollama 2")]
    found = asked(tmp_path, "SELECT engine_version FROM runs", *loads[:2])
    assert found == [("b1, ollama 2, xllamacpp 1",)]


def test_repository_and_commit_of_a_file_from_the_hub_are_stored(tmp_path: Path) -> None:
    spec = make_spec()
    first, second = spec.variants
    assert first.model is not None
    path = f"/c/models--me--tiny-GGUF/snapshots/{COMMIT}/tiny-F16.gguf"
    model = replace(first.model, paths=(path,))
    made = list(rows.variant_rows(replace(spec, variants=(replace(first, model=model), second))))
    assert [(one["hub_repo"], one["hub_commit"]) for one in made] == [("me/tiny-GGUF", COMMIT), (None, None)]
    assert made[0]["file_name"] == "tiny-F16.gguf"
