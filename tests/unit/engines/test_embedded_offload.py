"""What the embedded engine says of layers on a graphics device, and what it tells its library."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from liob_core.engines.embedded import CPU_BUILD, _with_offload
from liob_core.engines.embedded_child import make_params
from liob_core.types import LoadSettings

CPU = {"type": "cpu", "name": "CPU"}
ACCELERATOR = {"type": "accel", "name": "BLAS"}
GPU = {"type": "gpu", "name": "CUDA0"}


@pytest.mark.parametrize("devices", [[CPU], [CPU, ACCELERATOR]])
@pytest.mark.parametrize("told", [None, {"n_ctx": 512}])
def test_build_without_a_device_states_that_it_is_the_processor(devices: Any, told: Any) -> None:
    facts = _with_offload(told, devices, LoadSettings())
    assert facts is not None
    assert (facts["gpu_layers"], facts["gpu_share"], facts["gpu_share_reason"]) == (0, 0.0, CPU_BUILD)
    assert facts.get("n_ctx") == (512 if told else None)
    assert "warnings" not in facts


def test_layers_that_cannot_be_offloaded_are_warned_of() -> None:
    facts = _with_offload({}, [CPU], LoadSettings(gpu_layers=12))
    assert facts is not None
    assert "the 12 layers asked for stay there" in facts["warnings"][0]
    assert "warnings" not in (_with_offload({}, [CPU], LoadSettings(gpu_layers=0)) or {})


def test_build_with_a_device_is_believed_its_log_alone() -> None:
    assert _with_offload({"gpu_layers": 25}, [CPU, GPU], LoadSettings()) == {"gpu_layers": 25}
    assert _with_offload(None, [GPU], LoadSettings()) is None, "unknown stays unknown"


@pytest.mark.parametrize(("asked", "sent"), [(None, -1), (0, 0), (7, 7)])
def test_layers_as_the_library_takes_them(asked: int | None, sent: int) -> None:
    settings = LoadSettings(gpu_layers=asked)
    order = {name: getattr(settings, name) for name in LoadSettings.__dataclass_fields__}
    library = MagicMock(CommonParams=lambda: SimpleNamespace(model=SimpleNamespace(), **parts()))
    params = make_params(library, {**order, "model": "m.gguf", "api_key": "k"})
    assert params.n_gpu_layers == sent


def parts() -> dict[str, Any]:
    return {"cpuparams": SimpleNamespace(), "cpuparams_batch": SimpleNamespace()}
