"""Several engines as one: each variant on its own, one loaded at a time, prompts alike."""

from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.bench.engines import EngineSet, address_engine, engine_names, renders_as_the_file_says
from liob_core.engines.fake import FakeEngine
from liob_core.models.variant import fake_variant
from tests.unit.bench.builders import make_fake_spec


class Noted(FakeEngine):
    """A fake engine that notes what it is told to do."""

    def __init__(self, name, log, **capabilities):
        super().__init__({"sleep": False})
        self._own_name, self._log, self._changes = name, log, capabilities

    @property
    def name(self):
        return self._own_name

    @property
    def capabilities(self):
        return replace(super().capabilities, **self._changes)

    def load(self, variant, settings, *, log_path, load_s):
        self._log.append(f"load {variant.label} on {self._own_name}")
        return super().load(variant, settings, log_path=log_path, load_s=load_s)

    def unload(self):
        self._log.append(f"unload {self._own_name}")
        super().unload()

    def abort(self):
        self._log.append(f"abort {self._own_name}")

    def close(self):
        self._log.append(f"close {self._own_name}")


@pytest.fixture
def log():
    return []


@pytest.fixture
def engines(log):
    return EngineSet(
        {
            "embedded": Noted("embedded", log),
            "ollama": Noted("ollama", log, takes_token_ids=False, uses_file_template=False),
        }
    )


def variant(engine):
    return replace(fake_variant("Q8_0", bpw=8.5), engine=engine, label=f"Q8_0 {engine}")


def load(engines, engine, tmp_path: Path):
    one = variant(engine)
    return engines.load(one, one.load_settings, log_path=tmp_path / "log", load_s=1.0)


def test_each_variant_is_loaded_on_its_own_engine_after_the_other_is_free(engines, log, tmp_path):
    load(engines, "embedded", tmp_path)
    assert engines.name == "embedded"
    load(engines, "ollama", tmp_path)
    assert engines.name == "ollama"
    assert log.index("unload embedded") < log.index("load Q8_0 ollama on ollama")
    assert [line for line in log if line.startswith("load")] == [
        "load Q8_0 embedded on embedded",
        "load Q8_0 ollama on ollama",
    ]


def test_what_one_cannot_take_is_sent_to_none(engines, tmp_path):
    load(engines, "embedded", tmp_path)
    assert not engines.capabilities.takes_token_ids, "shapes are text for both, so that both get alike"
    assert engines.capabilities.uses_file_template
    load(engines, "ollama", tmp_path)
    assert not engines.capabilities.uses_file_template


def test_stop_and_end_reach_all_of_them(engines, log):
    engines.abort()
    engines.close()
    assert log == ["abort embedded", "abort ollama", "close embedded", "close ollama"]


def test_the_one_with_the_files_template_renders(engines):
    assert renders_as_the_file_says(engines, variant("embedded"))
    assert not renders_as_the_file_says(engines, variant("ollama"))
    assert renders_as_the_file_says(FakeEngine({}), variant("fake"))


def test_engines_of_a_run_are_those_of_its_variants_its_own_first():
    spec = make_fake_spec(engine="ollama", variants=(variant("embedded"), variant("ollama")))
    assert engine_names(spec) == ("ollama", "embedded")
    assert address_engine(engine_names(spec)) == "ollama"
    assert address_engine(("embedded", "llama-server")) == "llama-server"
    assert address_engine(("fake",)) == "fake"
