"""Names of quantizations: what a file's name promises, what its header says, what its tensors are."""

import re
from collections.abc import Sequence
from pathlib import Path

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType

from liob_core.models.header import TensorInfo

_LABEL = re.compile(
    r"(?<![A-Z0-9])(?P<label>(?:UD-)?(?:"
    r"IQ[1-4]_(?:XXS|XS|NL|XL|S|M)|TQ[12]_0|Q[2-8]_K(?:_(?:XXL|XL|S|M|L))?|Q[1458]_[01](?:_[48]_[48])?"
    r"|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32|FP32))(?![A-Z0-9])"
)
_SHARD = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})$")
_UNQUANTIZED = {"F64", "F32", "F16", "BF16", "I8", "I16", "I32", "I64"}
# Types whose blocks store a minimum or shift besides the scale.
_WITH_OFFSET = {"Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K", "IQ1_S", "IQ1_M"}


def shard_of(path: Path) -> tuple[int, int] | None:
    """The number and count in a name such as model-00001-of-00003.gguf, or None."""
    match = _SHARD.search(path.stem)
    if match is None or not 1 <= int(match["number"]) <= int(match["count"]):
        return None
    return int(match["number"]), int(match["count"])


def shard_paths(path: Path) -> tuple[Path, ...]:
    """The paths that the files of one model must have, in order; `path` itself where it is not split."""
    shard = shard_of(path)
    if shard is None:
        return (path,)
    stem = _SHARD.sub("", path.stem)
    return tuple(
        path.with_name(f"{stem}-{number:05d}-of-{shard[1]:05d}{path.suffix}")
        for number in range(1, shard[1] + 1)
    )


def published_label(path: Path) -> str | None:
    """The quantization that a file's name promises, e.g. Q4_K_M, or None."""
    found = [match["label"] for match in _LABEL.finditer(_SHARD.sub("", path.stem).upper())]
    return found[-1].replace("FP16", "F16").replace("FP32", "F32") if found else None


def plain_stem(path: Path) -> str:
    """A model's name without the quantization and part number that its file name ends with."""
    stem = _SHARD.sub("", path.stem)
    labels = list(_LABEL.finditer(stem.upper()))
    if not labels or labels[-1].end() != len(stem):
        return stem
    return stem[: labels[-1].start()].rstrip("-._ ") or stem


def is_blob(path: str) -> bool:
    """Whether a file is named by its digest, as Ollama keeps them, so that its name says nothing."""
    return re.split(r"[\\/]", path)[-1].startswith("sha256-")


def content_label(file_type: int | None) -> str | None:
    """The quantization that `general.file_type` stands for, or None where it is not known."""
    if file_type is None:
        return None
    try:
        name: str = LlamaFileType(file_type & ~1024).name  # 1024 marks a value that a loader guessed
    except ValueError:
        return None
    return name.removeprefix("MOSTLY_").removeprefix("ALL_")


def has_offset(type_name: str) -> bool | None:
    """True where blocks store an offset besides the scale, False where symmetric, None for unquantized."""
    return None if type_name in _UNQUANTIZED else type_name in _WITH_OFFSET


def bits_per_weight(tensor_type: GGMLQuantizationType) -> float:
    """Bits that one weight of a type takes, its block's scales included."""
    block_size, block_bytes = GGML_QUANT_SIZES[tensor_type]
    return float(8 * block_bytes / block_size)


def label_warning(published: str | None, content: str | None) -> str | None:
    """One sentence where a file's name and its header disagree, or None."""
    if published is None or content is None or _agree(published, content):
        return None
    return f"The file name says {published}, but the header says {content}."


def _agree(published: str, content: str) -> bool:
    plain = published.removeprefix("UD-")
    # Publishers' own mixes (Q4_K_L, UD-Q4_K_XL) have no header code: only the bits can agree.
    if published.startswith("UD-") or plain.endswith(("_K_L", "_XL", "_XXL")):
        return plain == content or plain.lstrip("I")[:2] == content.lstrip("I")[:2]
    if plain.endswith("_K") or plain.startswith("MXFP4"):
        return content.startswith(plain)
    return plain == content


def block_size_of(label: str | None) -> int | None:
    """The block size that a label asks for (1 for unquantized), or None where the label says nothing."""
    if label is None:
        return None
    plain = label.removeprefix("UD-")
    for tensor_type, (block_size, _) in GGML_QUANT_SIZES.items():
        if plain == tensor_type.name or (plain.startswith("MXFP4") and tensor_type.name == "MXFP4"):
            return int(block_size)
    return 256 if "_K" in plain or plain.startswith(("IQ", "TQ")) else None


def fallback_tensors(tensors: Sequence[TensorInfo], label: str | None) -> list[TensorInfo] | None:
    """The tensors whose rows do not divide into the label's blocks and so hold another type.

    None where the label is unknown. The output matrix is left out where it is Q8_0: the quantizer
    chooses that type for it on purpose.
    """
    block_size = block_size_of(label)
    if block_size is None:
        return None
    names = {tensor.name for tensor in tensors}
    output = "output.weight" if "output.weight" in names else "token_embd.weight"
    return [
        tensor
        for tensor in tensors
        if len(tensor.shape) > 1
        and tensor.shape[0] % block_size
        and tensor.type is not GGMLQuantizationType.F32
        and not (tensor.name == output and tensor.type is GGMLQuantizationType.Q8_0)
    ]
