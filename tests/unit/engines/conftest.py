"""What the tests of this room share: a variant, a scripted server, and a stand-in for the library."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from liob_core.types import LoadSettings, Variant
from tests.integration.ollama_server import OllamaServer
from tests.unit.engines.scripted import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server that answers what the test scripts."""
    scripted = ScriptedServer()
    yield scripted
    scripted.close()


@pytest.fixture
def variant(tmp_path: Path) -> Variant:
    """A variant whose file exists and holds nothing."""
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return Variant(
        key="k",
        label="Q4_1",
        quant="Q4_1",
        engine="embedded",
        engine_model=str(path),
        load_settings=LoadSettings(),
        weights_sha256=None,
        file_sha256=None,
        model=None,
        need=None,
    )


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a stand-in for xllamacpp with the given source before the real one in children."""

    def install(source: str) -> None:
        folder = tmp_path / "stand_in"
        folder.mkdir(exist_ok=True)
        (folder / "xllamacpp.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return install


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    """An Ollama server that replays what the test scripts."""
    made = OllamaServer()
    yield made
    made.close()
