import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter, quants

from liob_core.errors import FileError
from liob_core.models.gguf import find_models, read_chat_template, read_model

TEMPLATE = "  {% for m in messages %}{{ m.content }}\n{% endfor %}\n"


def test_model_sizes_and_mix(gguf: Callable[..., Path]) -> None:
    model = read_model(gguf())
    # 96 x 64 in Q8_0 (34 bytes per 32), per layer 64 x 64 in Q4_0 (18) and 64 x 128 in Q4_1 (20), 64 in F32.
    per_type = {
        "Q8_0": 96 * 64 // 32 * 34,
        "Q4_0": 2 * 4096 // 32 * 18,
        "Q4_1": 2 * 8192 // 32 * 20,
        "F32": 512,
    }
    assert {group.type_name: group.tensor_bytes for group in model.tensor_groups} == per_type
    assert model.tensor_bytes == sum(per_type.values())
    assert model.n_params == 96 * 64 + 2 * (64 * 64 + 64 * 128 + 64)
    assert model.bpw == pytest.approx(8 * sum(per_type.values()) / model.n_params)
    groups = {group.type_name: group for group in model.tensor_groups}
    assert (groups["Q4_1"].bits, groups["Q4_1"].block_size, groups["Q4_1"].has_offset) == (5.0, 32, True)
    assert (groups["Q4_0"].bits, groups["Q4_0"].has_offset) == (4.5, False)
    assert (groups["F32"].bits, groups["F32"].block_size, groups["F32"].has_offset) == (32.0, 1, None)
    assert model.tensor_groups[0].tensor_bytes == max(per_type.values())
    assert (model.published_label, model.content_label, model.label_warning) == ("Q4_0", "Q4_0", None)


def test_model_shape_of_the_network(gguf: Callable[..., Path]) -> None:
    model = read_model(gguf())
    assert (model.architecture, model.n_layers, model.n_ctx_train, model.n_embd) == ("llama", 2, 256, 64)
    assert (model.n_heads, model.n_kv_heads, model.head_dim_k, model.head_dim_v) == (4, (2, 2), 16, 16)
    assert (model.n_ff, model.vocab_size) == (128, 96)
    assert (model.sliding_window, model.n_experts, model.windowed_layers) == (None, None, None)


def test_model_heads_per_layer_and_explicit_head_size(gguf: Callable[..., Path]) -> None:
    sizes = {
        "block_count": 2,
        "embedding_length": 64,
        "attention.head_count": [4, 8],
        "attention.head_count_kv": [1, 2],
        "attention.key_length": 32,
        "attention.value_length": 24,
        "attention.sliding_window": 16,
        "attention.sliding_window_pattern": 2,
        "expert_count": 8,
        "expert_used_count": 2,
    }
    model = read_model(gguf(sizes=sizes))
    assert (model.n_heads, model.n_kv_heads) == (8, (1, 2))
    assert (model.head_dim_k, model.head_dim_v) == (32, 24)
    assert (model.sliding_window, model.windowed_layers) == (16, (True, False))
    assert (model.n_experts, model.n_experts_used) == (8, 2)


def test_model_unknown_stays_unknown(gguf: Callable[..., Path]) -> None:
    model = read_model(gguf("m.gguf", sizes={}, file_type=None, tokens=0))
    assert (model.published_label, model.content_label, model.label_warning) == (None, None, None)
    assert (model.fallback_tensors, model.fallback_warning) == (None, None)
    assert (model.n_layers, model.n_kv_heads, model.head_dim_k, model.vocab_size) == (None, None, None, None)
    assert (model.has_chat_template, model.chat_template_sha256, model.adds_bos) == (False, None, None)
    assert (model.imatrix, model.quantized_by, model.repo_url, model.base_model) == (None, None, None, None)


def test_model_damaged_layer_count_is_unknown(gguf: Callable[..., Path]) -> None:
    assert read_model(gguf(sizes={"block_count": 2**31, "attention.head_count": 4})).n_kv_heads is None


def test_model_provenance(gguf: Callable[..., Path]) -> None:
    metadata = {
        "general.name": "Tiny",
        "general.quantized_by": "somebody",
        "general.repo_url": "https://huggingface.co/org/tiny",
        "general.base_model.0.name": "Tiny Base",
        "general.base_model.0.organization": "Org",
        "quantize.imatrix.file": "calibration.dat",
        "tokenizer.ggml.add_bos_token": False,
    }
    model = read_model(gguf(metadata=metadata))
    assert (model.name, model.quantized_by, model.imatrix) == ("Tiny", "somebody", "calibration.dat")
    assert (model.repo_url, model.base_model) == ("https://huggingface.co/org/tiny", "Org/Tiny Base")
    assert model.adds_bos is False


def test_chat_template_is_kept_to_the_byte(gguf: Callable[..., Path]) -> None:
    path = gguf(metadata={"tokenizer.chat_template": TEMPLATE})
    model = read_model(path)
    assert read_chat_template(path) == TEMPLATE
    assert model.chat_template_sha256 == hashlib.sha256(TEMPLATE.encode()).hexdigest()
    assert read_chat_template(gguf("other.gguf")) is None


def test_label_and_fallback_warnings(gguf: Callable[..., Path]) -> None:
    model = read_model(gguf("tiny-Q8_0.gguf", file_type=15))
    assert model.label_warning == "The file name says Q8_0, but the header says Q4_K_M."
    assert (
        model.fallback_tensors == 4
    )  # attn_q and ffn_down of two layers; the output matrix is Q8_0 on purpose
    assert "4 of 7 tensors could not be Q4_K_M" in (model.fallback_warning or "")
    assert "Q4_0, Q4_1" in (model.fallback_warning or "")


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ({"metadata": {"general.type": "adapter"}}, "LoRA adapter"),
        ({"metadata": {"general.type": "mmproj"}}, "projector"),
        ({"arch": "clip", "sizes": {}}, "projector"),
        ({"metadata": {"general.type": "imatrix"}}, "importance matrix"),
        ({"arch": None, "sizes": {}}, "no architecture"),
        ({"names": []}, "no tensors"),
        ({"metadata": {"split.count": 3}}, "one of 3 parts"),
    ],
)
def test_not_a_model_is_one_sentence(gguf: Callable[..., Path], contents: dict, said: str) -> None:
    path = gguf(**contents)
    with pytest.raises(FileError, match=said) as caught:
        read_model(path)
    assert str(path) in str(caught.value)


@pytest.fixture
def split_model(tmp_path: Path) -> list[Path]:
    """One model in two files, as the library splits it."""
    writer = GGUFWriter(tmp_path / "big-Q4_0.gguf", "llama", split_max_tensors=1)
    writer.add_file_type(2)
    for index in range(2):
        data = quants.quantize(np.full((64, 64), index + 1.0, dtype=np.float32), T.Q4_0)
        writer.add_tensor(f"blk.{index}.attn_q.weight", data, raw_dtype=T.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(tmp_path.glob("*.gguf"))


def test_split_model_is_read_from_any_shard(split_model: list[Path]) -> None:
    first, second = split_model
    assert second.name == "big-Q4_0-00002-of-00002.gguf"
    model = read_model(second)
    assert model == read_model(first)
    assert model.paths == (str(first), str(second))
    assert (model.n_tensors, model.n_params, model.published_label) == (2, 8192, "Q4_0")
    assert model.file_bytes == first.stat().st_size + second.stat().st_size


def test_split_model_missing_part_is_named(split_model: list[Path]) -> None:
    split_model[1].unlink()
    with pytest.raises(FileError, match=r"big-Q4_0-00002-of-00002\.gguf is not beside it"):
        read_model(split_model[0])


def test_split_model_renamed_part_is_told(split_model: list[Path]) -> None:
    renamed = split_model[0].rename(split_model[0].with_name("renamed.gguf"))
    with pytest.raises(FileError, match="NAME-00001-of-00002"):
        read_model(renamed)


def test_split_model_same_part_twice_is_told(split_model: list[Path]) -> None:
    split_model[1].write_bytes(split_model[0].read_bytes())
    with pytest.raises(FileError, match="same tensor twice"):
        read_model(split_model[0])


def test_find_models_in_a_folder(gguf: Callable[..., Path], tmp_path: Path, split_model: list[Path]) -> None:
    plain = gguf("b.gguf")
    nested = gguf("sub/a.gguf")
    gguf("mmproj-F16.gguf", arch="clip", sizes={})
    broken = tmp_path / "zz.gguf"
    broken.write_bytes(b"<html>")
    (tmp_path / "notes.txt").write_text("x")
    assert find_models(tmp_path) == [plain, split_model[0], nested, broken]
    assert find_models(split_model[1]) == [split_model[0]]
    assert find_models(plain) == [plain]


def test_find_models_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no \.gguf model in"):
        find_models(tmp_path)
