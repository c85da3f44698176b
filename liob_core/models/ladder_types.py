"""Which quantizations a ladder can hold, and which type each tensor gets in those LIOB writes itself.

The rules follow llama.cpp's quantizer, so that sizes agree with the files people download. One
difference: without a compiler there is no Q6_K, so where it gives Q6_K to the output matrix of a Q4 or
Q5 file, LIOB gives it Q8_0 (llama.cpp does too where rows are not a multiple of 256).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType

from liob_core.errors import UsageError
from liob_core.models.header import Header, TensorInfo

# Names that stay as they are: small, and the network is sensitive to them.
_KEPT = ("_norm.weight", "ffn_gate_inp.weight", "position_embd.weight", "token_types.weight")
_KEPT_PARTS = ("altup", "laurel", "per_layer_model_proj", "ssm_conv1d", "shortconv.conv", "attn_rel_b")

UNQUANTIZED = ("F16", "BF16")
_BUILT_IN = (*UNQUANTIZED, "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
_ADD_ON = (
    "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "IQ4_NL", "IQ4_XS",
    "Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K",
)  # fmt: skip
_NEEDS_IMATRIX = ("IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "Q2_K_S", "IQ1_M", "IQ1_S")


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderType:
    """One quantization a ladder can hold; `file_type` is its number in a GGUF header."""

    name: str
    file_type: int
    needs_add_on: bool


def known_types() -> tuple[LadderType, ...]:
    """The quantizations a ladder can hold, those that need no add-on first."""
    return tuple(
        LadderType(
            name=name, file_type=int(LlamaFileType[f"MOSTLY_{name}"].value), needs_add_on=name in _ADD_ON
        )
        for name in (*_BUILT_IN, *_ADD_ON)
    )


def choose_types(names: Iterable[str]) -> list[LadderType]:
    """The types of these names, in any case, each once; an unknown name lists what there is."""
    known = {one.name: one for one in known_types()}
    chosen: list[LadderType] = []
    for name in dict.fromkeys(name.strip().upper() for name in names):
        if name in _NEEDS_IMATRIX:
            raise UsageError(
                f"{name} needs an importance matrix, which LIOB does not make. Choose another type."
            )
        if name not in known:
            raise UsageError(f"{name or 'An empty name'} is not a known type. Known are {', '.join(known)}.")
        chosen.append(known[name])
    if not chosen:
        raise UsageError(f"Name at least one type: {', '.join(known)}.")
    return chosen


def target_type(tensor: TensorInfo, type_name: str, output_name: str) -> GGMLQuantizationType:
    """The type that one tensor gets in a file of a built-in type."""
    wanted = GGMLQuantizationType[type_name]
    is_kept = (
        len(tensor.shape) < 2
        or not tensor.name.endswith("weight")
        or tensor.name.endswith(_KEPT)
        or any(part in tensor.name for part in _KEPT_PARTS)
    )
    if is_kept:
        return tensor.type
    if tensor.name == output_name and type_name not in UNQUANTIZED:
        wanted = GGMLQuantizationType.Q8_0
    block_size, _ = GGML_QUANT_SIZES[wanted]
    return GGMLQuantizationType.F16 if tensor.shape[0] % block_size else wanted


def output_name(tensors: Iterable[TensorInfo]) -> str:
    """The name of the output matrix: the token embeddings where they serve as both."""
    names = {tensor.name for tensor in tensors}
    return "output.weight" if "output.weight" in names else "token_embd.weight"


def type_bytes(n_elements: int, tensor_type: GGMLQuantizationType) -> int:
    """Bytes of so many elements in a type."""
    block_size, block_bytes = GGML_QUANT_SIZES[tensor_type]
    return n_elements // int(block_size) * int(block_bytes)


def planned_bytes(headers: Sequence[Header], kind: LadderType) -> int:
    """Bytes that a file of this type will take: exact but for the header, or a bound for add-on types."""
    tensors = [tensor for header in headers for tensor in header.tensors]
    metadata = sum(min((one.offset for one in header.tensors), default=0) for header in headers)
    if kind.needs_add_on:
        # Rows that do not divide into blocks of 256 fall back to types with up to 3.25 bits more.
        digit = int(next(letter for letter in kind.name if letter.isdigit()))
        bits = min(8.5, digit + 3.25)
        return metadata + int(sum(tensor.n_elements for tensor in tensors) * bits / 8)
    output = output_name(tensors)
    return metadata + sum(
        type_bytes(tensor.n_elements, target_type(tensor, kind.name, output)) for tensor in tensors
    )
