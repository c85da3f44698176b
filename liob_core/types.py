"""The frozen records that every room shares.

What was asked (`RunSpec`), what happened (`Sample`, `Load`, `Reading`) and where (`Machine`) are
separate records. Times are `perf_counter_ns` offsets from one UTC stamp; `None` means unknown.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

JsonValue = Any  # what json.loads can return


class Outcome(StrEnum):
    """How a sample ended; exactly one each. Only `OK` and `LENGTH` enter speed statistics."""

    OK = "ok"
    LENGTH = "length"
    EMPTY = "empty"
    THINKING_ONLY = "thinking_only"
    TRUNCATED_THINKING = "truncated_thinking"
    REPETITION = "repetition"
    CONTEXT_EXCEEDED = "context_exceeded"
    REFUSED_REMOTE = "refused_remote"
    ENGINE_ERROR = "engine_error"
    ENGINE_DIED = "engine_died"
    INCOMPLETE = "incomplete"
    BAD_REPLY = "bad_reply"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class Task(StrEnum):
    """What a run does with each variant."""

    SPEED = "speed"
    SUITE = "suite"
    CLOSENESS = "closeness"


class Shape(StrEnum):
    """The fixed request shapes of the `speed` task, named as llama-bench names them."""

    PP512 = "pp512"
    TG128 = "tg128"
    CHAT512 = "chat512"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat turn; `role` is system, user or assistant."""

    role: str
    content: str


# --- models -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """All tensors of one GGML type in a file. `has_offset` is None for unquantized types."""

    type_name: str
    n_tensors: int
    n_elements: int
    tensor_bytes: int
    bits: float
    block_size: int
    has_offset: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """What the header of a GGUF model says (all shards together), without reading the weights."""

    paths: tuple[str, ...]
    file_bytes: int
    tensor_bytes: int
    n_params: int
    bpw: float  # true bits per weight: 8 x tensor_bytes / n_params
    n_tensors: int
    tensor_groups: tuple[TensorGroup, ...]
    architecture: str
    name: str | None
    published_label: str | None  # from the file name, e.g. Q4_K_M
    content_label: str | None  # from general.file_type
    label_warning: str | None  # published label against content
    fallback_tensors: int | None  # quantized tensors that fell back to another type; None: unknown
    fallback_warning: str | None
    n_layers: int | None
    n_ctx_train: int | None
    n_embd: int | None
    n_heads: int | None
    n_kv_heads: tuple[int, ...] | None  # per layer
    head_dim_k: int | None
    head_dim_v: int | None
    sliding_window: int | None
    n_experts: int | None
    n_experts_used: int | None
    vocab_size: int | None
    has_chat_template: bool
    chat_template_sha256: str | None
    adds_bos: bool | None
    imatrix: str | None  # file or dataset named in the header
    quantized_by: str | None
    repo_url: str | None
    base_model: str | None
    n_ff: int | None = None  # width of the feed-forward part; of one expert where there are experts
    windowed_layers: tuple[bool, ...] | None = None  # which keep only the window; None: not said
    read_bytes: int | None = None  # of the tensors that one output token reads


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Predicted memory in bytes for one load; `None` fields with `reason` where LIOB does not know."""

    weights_bytes: int
    kv_bytes: int | None
    compute_bytes: int | None
    need_bytes: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How a variant is loaded; every field is explicit in every run and part of the variant's key."""

    n_ctx: int = 4096
    n_parallel: int = 1
    n_batch: int = 2048
    n_ubatch: int = 512
    threads: int = 1
    gpu_layers: int | None = None  # None: automatic, as many as the engine finds room for
    flash_attn: str = "auto"  # auto | on | off
    kv_type_k: str = "f16"
    kv_type_v: str = "f16"
    load_mode: str = "none"  # none: weights are read into memory; mmap: the file is mapped
    repack: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One quantization of a model on one engine with one set of load settings.

    `key` is a hash over weights sha256, engine and load settings; `label` is unique in a run.
    """

    key: str
    label: str
    quant: str
    engine: str
    engine_model: str  # what the engine is told: a path or a name
    load_settings: LoadSettings
    weights_sha256: str | None
    file_sha256: str | None
    model: ModelFile | None
    need: MemoryNeed | None


# --- suites -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A deterministic grader of one prompt: `kind` and its parameters (see `quality.checks`)."""

    kind: str  # number | exact | regex | contains | choice | json_schema | rouge_l | bleu | token_f1
    # | unit_tests
    params: Mapping[str, JsonValue]


class CheckResult(StrEnum):
    """What a deterministic grader says of an answer. UNCHECKED: it could not be checked."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """One grader's result, why, and the answer it extracted from the text."""

    result: CheckResult
    reason: str
    extracted: str | None = None
    score: float | None = None  # 0 to 1, of checks that measure; None: the check has no score


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of a suite: few-shot turns and a system message come before the last user turn."""

    prompt_id: str
    category: str
    messages: tuple[Message, ...]
    check: Check | None = None
    rubric: str | None = None
    reference: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named, hashed set of prompts. `sha256` covers the prompts' content, not the file's layout."""

    name: str
    description: str
    version: str
    sha256: str
    prompts: tuple[Prompt, ...]


# --- what is asked ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Every option a request carries; all are sent explicitly. Seeds are 0 to 2^32 - 2."""

    max_tokens: int
    seed: int = 1
    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    json_schema: Mapping[str, JsonValue] | None = None
    cache_prompt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Deadlines of one request in seconds: until the first token, between tokens, in all; and of a load."""

    first_token_s: float = 600.0
    between_tokens_s: float = 120.0
    request_s: float = 3600.0
    load_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessAsk:
    """The text and windows of task `closeness`; lengths are in tokens.

    `n_windows` None means all there are. `stop_half_width`: the task ends when the 95 % interval of every
    ln ratio (of ln PPL where there is one variant alone) is at most this far to each side.
    """

    text_name: str
    text_path: str
    text_sha256: str
    text_bytes: int
    n_ctx: int = 512
    n_windows: int | None = 32
    from_start: bool = False
    stop_half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What was asked, written once before the first request and never edited; its hash decides resume."""

    run_id: str
    title: str
    created_utc: str
    engine: str
    engine_url: str | None
    variants: tuple[Variant, ...]
    reference: str  # label of the reference variant
    tasks: tuple[Task, ...]
    suite: Suite | None
    sampling: Sampling
    shapes: tuple[Shape, ...] = (Shape.PP512, Shape.TG128, Shape.CHAT512)
    n_blocks: int = 3
    suite_repeats: int = 1  # blocks in which the suite is run; only the first is graded
    n_warmups: int = 3
    order_seed: int = 1
    limits: Limits = field(default_factory=Limits)
    monitor_hz: float = 10.0
    prompt_mode: str = (
        "reference"  # reference: rendered once with the reference's template; own: each its own;
        # engine: the turns go to the engine, which applies a template of its own
    )
    liob_version: str = ""
    engine_options: Mapping[str, JsonValue] = field(default_factory=dict)  # the fake engine's script
    allow_code: bool = False  # code in answers may be run by checks `unit_tests`
    closeness: ClosenessAsk | None = None  # of task `closeness`
    n_seeds: int = 1  # over which the suite's prompts are repeated, one a block; 1: repeats share one seed
    energy: bool = False  # of each shape of task `speed`, where this machine has a counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One planned request: variant x task x prompt or shape x repeat, in a planned order."""

    cell_id: str  # deterministic within a run
    index: int
    variant: str  # label
    block: int
    task: Task
    shape: Shape | None
    prompt_id: str | None
    category: str | None
    repeat: int
    warmup: bool
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """The exact text sent to every variant for one prompt, and what its tokens showed."""

    prompt_id: str
    text: str
    sha256: str
    n_tokens: int | None
    templated: bool  # False: the reference has no template, so the prompt is plain text
    template_sha256: str | None


# --- what happened ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load of one variant: what was asked, what became effective, and what it took."""

    load_id: str
    run_id: str
    variant: str
    block: int
    started_utc: str
    outcome: Outcome
    reason: str | None
    load_ms: float | None  # asking to answering; imports and warm-up apart; file in the page cache
    asked: Mapping[str, JsonValue]
    effective: Mapping[str, JsonValue] | None  # parsed from the engine's log
    weights_bytes: int | None
    kv_bytes: int | None
    compute_bytes: int | None
    output_bytes: int | None
    host_rss_bytes: int | None  # the engine's own memory before the load
    engine_version: str | None
    system_info: str | None
    log_file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unload:
    """The end of a load: the memory high-water marks while loading and while running, in bytes."""

    load_id: str
    ended_utc: str
    peak_rss_load_bytes: int | None
    peak_rss_run_bytes: int | None
    peak_anon_bytes: int | None
    peak_memory_bytes: int | None  # maximum of the simultaneous sum: tree less host, plus device
    peak_vram_bytes: int | None
    peak_vram_reason: str | None
    sampler_cpu_share: float | None  # the monitor's own cost, as a share of one core
    peak_memory_reason: str | None = None  # why peak_memory is unknown, or what it includes


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyWindow:
    """What one scope spent while requests of one shape ran back to back; NULL with a reason where unknown.

    The powers are of the model at rest, before and after.
    """

    run_id: str
    load_id: str
    variant: str
    block: int
    shape: Shape
    scope: str  # gpu, package or dram: each stands alone
    source: str  # what told it
    started_utc: str
    window_s: float
    n_requests: int
    output_tokens: int
    energy_j: float | None
    idle_before_w: float | None
    idle_after_w: float | None
    contended: bool | None  # as of samples
    reason: str | None  # why the energy is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """When things happened in one request: ns after sending it, on `perf_counter_ns`."""

    first_token_ns: int | None = None  # first event that carries a token, visible or not
    first_text_ns: int | None = None  # first non-empty text, thinking or tool call
    first_output_ns: int | None = None  # first non-thinking text
    last_token_ns: int | None = None  # last event that carries a token, the end token's too
    end_ns: int | None = None  # last byte
    first_event_tokens: int | None = None  # tokens in the first token's event; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the engine itself reported about one request, exactly as reported (ms are its own clock)."""

    prompt_tokens: int | None = None  # the whole prompt, cached part included
    cached_tokens: int | None = None
    output_tokens: int | None = None
    engine_prompt_ms: float | None = None
    engine_eval_ms: float | None = None
    engine_load_ms: float | None = None
    stop_type: str | None = None
    eval_excludes_first_token: bool = True
    engine_total_ms: float | None = None  # waiting, loading and prompt included
    cold: bool | None = None  # the engine had to load the model for this request; None: not told


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the machine did during one sample. Shares are of the whole machine's CPU time, 0 to 1."""

    cpu_mean_pct: float | None = None
    cpu_peak_pct: float | None = None
    cpu_other_share: float | None = None  # by processes that are neither the engine nor LIOB
    cpu_steal_share: float | None = None
    peak_rss_bytes: int | None = None
    peak_system_ram_bytes: int | None = None
    peak_vram_bytes: int | None = None
    contended: bool | None = None  # kept out of verdicts; None: could not be told
    n_readings: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One executed cell: raw stamps, raw engine counters, text and exactly one outcome."""

    sample_id: str
    run_id: str
    load_id: str | None
    cell: Cell
    suite: str | None
    started_utc: str
    outcome: Outcome
    reason: str | None
    cold: bool  # the first request after a load
    prompt: str | None  # None where token ids were sent
    prompt_sha256: str | None
    response: str
    thinking: str
    stamps: Stamps
    counters: Counters
    surroundings: Surroundings
    check: CheckOutcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One device at one moment, from NVML; `None` where the device does not tell."""

    device: int
    used_bytes: int | None
    process_bytes: int | None
    utilization_pct: float | None
    power_w: float | None
    energy_mj: int | None
    temperature_c: float | None
    sm_clock_mhz: int | None
    mem_clock_mhz: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The machine at one moment. `utc_ns` is epoch time derived from one wall stamp and `perf_counter_ns`."""

    utc_ns: int
    rss_bytes: int | None = None  # the engine's process tree
    anon_bytes: int | None = None
    swap_bytes: int | None = None
    engine_cpu_pct: float | None = None  # 100 = one core
    system_cpu_pct: float | None = None  # 100 = all cores
    other_cpu_share: float | None = None
    steal_share: float | None = None
    system_ram_bytes: int | None = None
    gpus: tuple[GpuReading, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """How fast memory was read with so many threads; None with the reason where it was not measured."""

    threads: int
    read_bytes_per_s: float | None
    cache_bytes: int | None  # of the last level, all of them together
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInfo:
    """One graphics device, as NVML names it."""

    index: int
    name: str
    memory_bytes: int | None
    driver: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a run was made: everything that changes its numbers; no host name, user or path."""

    machine_id: str  # hash of the hardware facts below
    cpu_name: str | None
    cpu_arch: str
    physical_cores: int | None
    logical_cores: int
    ram_bytes: int
    swap_bytes: int | None
    os_name: str
    os_version: str
    python_version: str
    gpus: tuple[GpuInfo, ...]
    gpu_reason: str | None  # why there are none
    power_source: str | None  # ac, battery; None: not known
    cpu_governor: str | None
    is_virtual: bool | None
    missing_sources: Mapping[str, str] = field(default_factory=dict)  # probe -> why it gives nothing
    cpu_limit: float | None = None  # cores that a container or the scheduler allows; None: all
    memory_limit_bytes: int | None = None  # of a container; None: all


# --- opinions ---------------------------------------------------------------------------------


class JudgeState(StrEnum):
    """What became of one question to a judge; there is a score or a result only where it is `SCORED`."""

    SCORED = "scored"
    JUDGE_ERROR = "judge_error"  # it could not be asked
    PARSE_ERROR = "parse_error"
    OUT_OF_RANGE = "out_of_range"
    REFUSED = "refused"
    TRUNCATED_JUDGE = "truncated_judge"


class JudgeMode(StrEnum):
    """How a judge is asked: for a score of one answer, or for the better of it and the reference's."""

    SINGLE = "single"
    PAIRWISE = "pairwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One opinion on one sample; appended, never replaced. `score` is 1 to 10, `result` win, tie or loss."""

    judgement_id: str
    run_id: str
    sample_id: str
    variant: str
    prompt_id: str
    judge: str  # for people
    judge_key: str  # hash over its weights, its engine and how it is asked
    mode: JudgeMode
    state: JudgeState
    score: int | None
    reason: str | None  # the judge's own; where it is not scored, why
    raw_reply: str
    attempts: int
    utc: str
    earlier_replies: tuple[str, ...] = ()  # the unusable ones before, those to the swapped pair included
    reference_sample_id: str | None = None
    result: str | None = None  # of the variant, from both orders
    preferred_first: str | None = None  # variant, reference or tie, with the variant shown first
    preferred_second: str | None = None  # the same with the variant shown second
    raw_reply_second: str | None = None
    length_ratio: float | None = None  # characters of the variant's answer / of the reference's
    lengths_differ: bool | None = None  # the longer has more than 1.2 times the characters of the shorter
    calibration_share: float | None = None  # of the calibration that the judge got right, 0 to 1
    is_self: bool | None = None  # the judge is the judged model, maybe in another size; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """What a judge said to one question whose right answer is known."""

    calibration_id: str
    run_id: str
    judge: str
    judge_key: str
    mode: JudgeMode
    set_sha256: str
    item_id: str
    kind: str  # gold | identical | damaged
    expected: str
    got: str | None
    is_right: bool  # an unusable reply is not right
    state: JudgeState
    raw_reply: str
    attempts: int
    utc: str


def to_json(record: Any) -> dict[str, JsonValue]:
    """A record as plain dicts, lists and scalars, ready for `json.dumps`."""
    return asdict(record)
