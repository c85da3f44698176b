"""Small runs written straight into the raw tables, so that every expected figure is computed by hand."""

import json
import shutil
from datetime import UTC, datetime, timedelta

import duckdb
import pandas as pd
import pytest

from liob_core.analysis.summary import summarize
from liob_core.store import database

RUN = "20260101-000000-test"
START = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class RunWriter:
    """Rows of one run; every method takes what differs from a plain, healthy default."""

    run_id = RUN

    def __init__(self, path):
        self.path = path
        self.con = duckdb.connect(str(path))
        self.n_samples = 0
        self.rows = {}

    def insert(self, table, **columns):
        self.rows.setdefault(table, []).append(columns)

    def flush(self):
        """Write what was added since, one statement a table: a row at a time takes seconds."""
        for table, rows in self.rows.items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            values = [[row.get(name) for name in names] for row in rows]
            frame = pd.DataFrame(values, columns=names, dtype=object)  # noqa: F841 - DuckDB finds it by name
            self.con.execute(f"INSERT INTO raw.{table} BY NAME SELECT * FROM frame")
        self.rows = {}

    def run(self, **changes):
        row = {
            "run_id": RUN,
            "title": "A run",
            "created_utc": START,
            "started_utc": START,
            "engine": "fake",
            "engine_version": "1",
            "reference": "F16",
            "tasks": ["speed", "suite"],
            "shapes": ["pp512", "tg128", "chat512"],
            "suite": "core",
            "n_suite_prompts": 3,
            "max_tokens": 64,
            "n_blocks": 3,
            "suite_repeats": 1,
            "n_warmups": 3,
            "prompt_mode": "reference",
            "liob_version": "0.1.0",
            "machine_id": "m1",
            "machine": json.dumps({"power_source": "ac"}),
            "state": "finished",
            "n_skipped_lines": 0,
            "journal_offset": 0,
            "readings_offset": 0,
            "ingested_utc": START,
        }
        self.insert("runs", **(row | changes))

    def machine(self, **changes):
        row = {
            "machine_id": "m1",
            "cpu_name": "Test CPU",
            "physical_cores": 4,
            "logical_cores": 8,
            "ram_bytes": 16 * 2**30,
            "os_name": "Linux",
            "gpus": "[]",
        }
        self.insert("machines", **(row | changes))

    def variant(self, label, bpw, **changes):
        position = len(self.rows.get("variants", []))
        row = {
            "run_id": RUN,
            "variant": label,
            "position": position,
            "is_reference": label == "F16",
            "quant": label,
            "engine": "fake",
            "model_name": "Test model",
            "file_name": f"model-{label}.gguf",
            "file_bytes": int(bpw * 2**27),
            "tensor_bytes": int(bpw * 2**27),
            "n_params": 2**30,
            "bpw": bpw,
            "n_ctx": 4096,
            "threads": 2,
            "gpu_layers": 0,
            "need_bytes": int(bpw * 2**27) + 2**28,
            "need_weights_bytes": int(bpw * 2**27),
            "need_kv_bytes": 2**27,
            "need_compute_bytes": 2**27,
        }
        self.insert("variants", **(row | changes))

    def load(self, variant, block=0, load_ms=100.0, **changes):
        row = {
            "load_id": f"load-{len(self.rows.get('loads', []))}",
            "run_id": RUN,
            "variant": variant,
            "block": block,
            "started_utc": START,
            "outcome": "ok",
            "load_ms": load_ms,
            "weights_bytes": 2**30,
            "kv_bytes": 2**27,
            "compute_bytes": 2**26,
            "output_bytes": 2**20,
            "peak_rss_load_bytes": 2 * 2**30,
            "peak_rss_run_bytes": 3 * 2**30,
            "peak_memory_bytes": 2**31,
            "peak_vram_reason": "no GPU",
        }
        self.insert("loads", **(row | changes))

    def sample(self, variant, task="suite", **changes):
        self.n_samples += 1
        row = {
            "sample_id": f"sample-{self.n_samples:05}",
            "run_id": RUN,
            "cell_id": f"cell-{self.n_samples}",
            "variant": variant,
            "block": 0,
            "task": task,
            "warmup": False,
            "cold": False,
            "seed": 1,
            "started_utc": START + timedelta(seconds=self.n_samples),
            "outcome": "ok",
            "response": "text",
            "contended": False,
            "unknown": "{}",
        }
        self.insert("samples", **(row | changes))

    def speed(self, variant, block, *, chat_ms=1270.0, prefill_ms=256.0, ttft_ms=300.0, **changes):
        """A block of the speed task: 127 timed tokens in `chat_ms`, 512 prompt tokens in `prefill_ms`."""
        self.sample(
            variant,
            "speed",
            block=block,
            shape="pp512",
            prompt_tokens=512,
            output_tokens=1,
            engine_prompt_ms=prefill_ms,
            engine_eval_ms=0.0,
            prefill_tps=512 / prefill_ms * 1e3,
            ttft_ms=prefill_ms,
            e2e_ms=prefill_ms,
            unknown=json.dumps({"decode_tps": "too short"}),
            **changes,
        )
        self.sample(
            variant,
            "speed",
            block=block,
            shape="chat512",
            prompt_tokens=512,
            output_tokens=128,
            engine_prompt_ms=prefill_ms,
            engine_eval_ms=chat_ms,
            prefill_tps=512 / prefill_ms * 1e3,
            decode_tps=127 / chat_ms * 1e3,
            ttft_ms=ttft_ms,
            tpot_ms=chat_ms / 127,
            e2e_ms=chat_ms + ttft_ms,
            **changes,
        )

    def answer(self, variant, prompt_id, check_result=None, **changes):
        """One graded answer: 41 tokens in 400 ms after 100 ms, plain unless `changes` say otherwise."""
        row = {
            "prompt_id": prompt_id,
            "category": "math",
            "suite": "core",
            "prompt": f"question {prompt_id}",
            "check_result": check_result,
            "prompt_tokens": 64,
            "cached_tokens": 0,
            "output_tokens": 41,
            "engine_prompt_ms": 100.0,
            "engine_eval_ms": 400.0,
            "prefill_tps": 640.0,
            "decode_tps": 100.0,
            "ttft_ms": 100.0,
            "tpot_ms": 10.0,
            "e2e_ms": 500.0,
        }
        self.sample(variant, "suite", **(row | changes))

    def prompt(self, prompt_id, position=0, **changes):
        row = {
            "run_id": RUN,
            "prompt_id": prompt_id,
            "position": position,
            "suite": "core",
            "category": "math",
            "messages": json.dumps([{"role": "user", "content": f"question {prompt_id}"}]),
            "check_kind": "number",
            "prompt": f"<user>question {prompt_id}",
            "templated": True,
        }
        self.insert("prompts", **(row | changes))

    def summarize(self):
        self.flush()
        summarize(self.con, RUN)

    def row(self, view, **where):
        """The only row of `view` that has these values, as a dict."""
        clause = " AND ".join(f"{name} = ?" for name in where)
        cursor = self.con.execute(f"SELECT * FROM {view} WHERE {clause}", list(where.values()))
        names = [column[0] for column in cursor.description]
        (values,) = cursor.fetchall()
        return dict(zip(names, values, strict=True))

    def close(self):
        """The finished database file."""
        self.con.close()
        return self.path


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    path = tmp_path_factory.mktemp("analysis") / "empty.duckdb"
    with database.write(path):
        return path


@pytest.fixture
def writer(tmp_path, empty_database):
    made = RunWriter(shutil.copy(empty_database, tmp_path / "liob.duckdb"))
    yield made
    made.con.close()
