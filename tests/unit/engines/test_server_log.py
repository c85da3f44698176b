from pathlib import Path

import pytest

from liob_core.engines import server_log
from liob_core.engines.server_log import load_error, parse_log, read_log

F16 = """\
0.00.002.679 I cmn  common_param: system_info: n_threads = 2 (n_threads_batch = 3) / 4 | CPU : AVX2 = 1 |
0.00.159.087 I load_tensors: loading model tensors, this can take a while... (load_mode = none)
0.00.161.119 I load_tensors:          CPU model buffer size =    92.10 MiB
0.00.273.891 I llama_context: n_seq_max             = 1
0.00.273.892 I llama_context: n_ctx                 = 4096
0.00.273.892 I llama_context: n_ctx_seq             = 4096
0.00.273.893 I llama_context: n_batch               = 2048
0.00.273.893 I llama_context: n_ubatch              = 512
0.00.273.894 I llama_context: flash_attn            = auto
0.00.273.902 I llama_context: n_ctx_seq (4096) < n_ctx_train (8192) -- the full capacity will not be used
0.00.273.946 I llama_context:        CPU  output buffer size =     0.19 MiB
0.00.274.248 I llama_kv_cache:        CPU KV buffer size =    90.00 MiB
0.00.318.863 I llama_kv_cache: size =   90.00 MiB (  4096 cells,  30 layers,  1/1 seqs), \
K (f16):   45.00 MiB, V (f16):   45.00 MiB
0.00.320.230 I resolve_fused_ops: Flash Attention enabled
0.00.322.876 I sched_reserve:        CPU compute buffer size =    18.64 MiB
0.00.361.281 I srv          init: listening on http://127.0.0.1:34343
"""
GEMMA = """\
llama_kv_cache:        CPU KV buffer size =   160.00 MiB
llama_kv_cache:        CPU KV buffer size =    26.50 MiB
"""
CUDA = """\
load_tensors: offloaded 25/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  3000.25 MiB
load_tensors:   CPU_Mapped model buffer size =  1000.50 MiB
sched_reserve:      CUDA0 compute buffer size =   300.00 MiB
sched_reserve:        CPU compute buffer size =    10.00 MiB
sched_reserve:      CUDA0 compute buffer size =   258.50 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =    50.00 MiB
"""


def test_parse_log_gives_bytes_and_effective_settings():
    facts = parse_log(F16)
    assert facts.weights_bytes == round(92.10 * 1048576)
    assert facts.kv_bytes == 94_371_840  # 4096 tokens x 30 layers x 192 x 2 x 2 bytes
    assert facts.compute_bytes == round(18.64 * 1048576)
    assert facts.output_bytes == round(0.19 * 1048576)
    effective = dict(facts.effective or {})
    effective.pop("buffers")
    assert effective == {
        "threads": 2,
        "threads_batch": 3,
        "load_mode": "none",
        "n_seq_max": 1,
        "n_ctx": 4096,
        "n_ctx_seq": 4096,
        "n_batch": 2048,
        "n_ubatch": 512,
        "kv_type_k": "f16",
        "kv_type_v": "f16",
        "flash_attn": "on",
    }


def test_parse_log_two_cache_lines_are_summed():
    assert parse_log(GEMMA).kv_bytes == round(186.5 * 1048576)


def test_parse_log_several_devices_are_summed_and_a_second_reservation_replaces_the_first():
    facts = parse_log(CUDA)
    assert facts.weights_bytes == round(4000.75 * 1048576)
    assert facts.compute_bytes == round(268.5 * 1048576)
    assert facts.kv_bytes == 50 * 1048576
    assert facts.output_bytes is None
    assert (facts.effective or {})["gpu_layers"] == 25


@pytest.mark.parametrize("text", ["", "nothing known\n", "KV buffer size = much MiB\n"])
def test_parse_log_unknown_text_is_none_not_zero(text):
    facts = parse_log(text)
    assert (facts.weights_bytes, facts.kv_bytes, facts.effective) == (None, None, None)


def test_parse_log_lines_of_requests_are_not_read():
    assert parse_log(F16 + F16.replace("90.00", "99.00")).kv_bytes == 94_371_840


def test_read_log_starts_at_the_load_asked_for(tmp_path: Path):
    path = tmp_path / "engine.log"
    path.write_text(F16.replace("90.00", "45.00") + F16)
    assert read_log(path, len(F16)).kv_bytes == 94_371_840
    assert read_log(path).kv_bytes == 47_185_920


def test_read_log_missing_file_is_unknown(tmp_path: Path):
    assert read_log(tmp_path / "none.log").effective is None


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "0.00.025.559 E llama_model_load: error loading model: tensor 'x' is not within the bounds",
            "tensor 'x' is not within the bounds",
        ),
        (
            "0.00.003.745 E gguf_init_from_reader: invalid magic characters: '<!DO', expected 'GGUF'",
            "invalid magic characters: '<!DO', expected 'GGUF'",
        ),
        ("0.00.004.203 E srv    load_model: failed to load model, 'x'", "failed to load model, 'x'"),
    ],
)
def test_load_error_is_the_first_error_without_prefixes(line, cause):
    text = f"0.00.1 I fine: yes\n{line}\n0.00.9 E srv    load_model: failed\n"
    assert load_error(text) == cause


def test_load_error_log_without_errors_is_none():
    assert load_error(F16) is None


def test_tail_gives_the_last_lines(tmp_path: Path):
    path = tmp_path / "engine.log"
    path.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert server_log.tail(path, 2) == "line 4998\nline 4999"
