"""Memory saved and closeness lost by a compressed KV cache."""

import pytest

from liob_core.analysis.cache_costs import cache_costs
from liob_core.analysis.closeness import closeness_facts, closeness_table
from tests.unit.analysis.test_closeness import fidelity

CACHES = {"f16": 96 * 2**20, "q8_0": 51 * 2**20, "q4_0": 27 * 2**20}


def run_of_caches(writer, *, small_cache=0.02, small_weights=0.03):
    writer.run(tasks=["closeness"])
    for weights, bpw in (("F16", 16.0), ("Q4", 4.5)):
        for kv_type, n_bytes in CACHES.items():
            cache = {"kv_type_k": kv_type, "kv_type_v": kv_type, "need_kv_bytes": n_bytes}
            about = {"weights_sha256": weights, "is_reference": (weights, kv_type) == ("F16", "f16")}
            writer.variant(f"{weights} KV {kv_type}", bpw, **cache, **about)
    writer.variant("Q2", 3.0, weights_sha256="Q2", kv_type_k="f16", kv_type_v="f16", need_kv_bytes=1)
    fidelity(writer, "F16 KV f16")
    fidelity(writer, "F16 KV q8_0", 0.0001, kld=0.0004)
    fidelity(writer, "F16 KV q4_0", small_cache, kld=0.01)
    fidelity(writer, "Q4 KV f16", small_weights, kld=0.03)
    fidelity(writer, "Q4 KV q8_0", 0.031, kld=0.031)
    fidelity(writer, "Q4 KV q4_0", 0.06, kld=0.05)
    fidelity(writer, "Q2", 0.6, kld=0.5)
    writer.summarize()
    return writer.close()


def test_each_cache_is_compared_with_the_same_weights(writer):
    costs = cache_costs(run_of_caches(writer), writer.run_id).set_index("variant")
    # Weights that ran with one cache alone have nothing to say here.
    assert "Q2" not in costs.index
    compressed = costs.loc["F16 KV q8_0"]
    assert compressed["saved_bytes"] == 45 * 2**20
    assert compressed["saved_share"] == pytest.approx(45 / 96)
    assert compressed["words"] == "not distinguishable"
    assert costs.loc["F16 KV q4_0", "words"] == "perplexity 2.0 % higher"
    other = costs.loc["Q4 KV q4_0"]
    assert (other["base"], other["ln_cost"]) == ("Q4 KV f16", pytest.approx(0.03))
    assert other["words"].startswith("perplexity 3.0 % higher (no interval")
    assert other["memory_bytes"] == 4.5 * 2**27 + 27 * 2**20


def test_a_cache_that_loses_too_much_does_not_end_the_ladder_of_weights(writer):
    db = run_of_caches(writer, small_cache=0.05, small_weights=0.01)
    table = closeness_table(db, writer.run_id)
    assert table["variant"].tolist()[:3] == ["F16 KV f16", "F16 KV q8_0", "F16 KV q4_0"]
    assert table.set_index("variant").loc["F16 KV q8_0", "is_compressed"]
    # F16's q4_0 may lose more than 3 %, Q4 with its whole cache e^(0.01 + 1.753 x 0.001) - 1 = 1.2 %.
    assert closeness_facts(db, writer.run_id).sentence == (
        "Down to Q4 KV f16: perplexity at most 1.2 % higher than F16 KV f16's (95 %)."
    )


def test_an_unknown_need_is_no_saving(writer):
    writer.run(tasks=["closeness"])
    same = {"weights_sha256": "w", "need_kv_bytes": None, "need_weights_bytes": None}
    writer.variant("F16", 16.0, kv_type_k="f16", kv_type_v="f16", **same)
    writer.variant("F16 KV q8_0", 16.0, kv_type_k="q8_0", kv_type_v="q8_0", **same)
    fidelity(writer, "F16")
    fidelity(writer, "F16 KV q8_0", 0.01, kld=0.01)
    writer.summarize()
    db = writer.close()
    assert not closeness_table(db, writer.run_id)["is_compressed"].any()
    other = cache_costs(db, writer.run_id).set_index("variant").loc["F16 KV q8_0"]
    assert other[["cache_bytes", "saved_bytes", "saved_share"]].isna().all()


def test_a_run_with_one_type_of_cache_has_no_such_table(writer):
    writer.run(tasks=["closeness"])
    for label in ("F16", "Q4"):
        writer.variant(label, 8.0, weights_sha256=label, kv_type_k="f16", kv_type_v="f16", need_kv_bytes=1)
        fidelity(writer, label, None if label == "F16" else 0.01, kld=0.01)
    writer.summarize()
    assert cache_costs(writer.close(), writer.run_id).empty


def test_the_noise_floor_is_the_reference_itself_on_other_kernels(writer):
    writer.run(tasks=["closeness"])
    same = {"weights_sha256": "w", "kv_type_k": "f16", "kv_type_v": "f16"}
    writer.variant("F16", 16.0, **same)
    writer.variant("F16 on the GPU", 16.0, **same, gpu_layers=99)
    writer.variant("F16 again", 16.0, **same)
    fidelity(writer, "F16")
    fidelity(writer, "F16 on the GPU", 0.001, kld=0.0003)
    fidelity(writer, "F16 again", 0.0, kld=0.0)
    writer.summarize()
    db = writer.close()
    table = closeness_table(db, writer.run_id).set_index("variant")
    # The same kernels are 0 by construction, which is no measurement of the noise.
    assert table["is_floor"].to_dict() == {"F16": False, "F16 on the GPU": True, "F16 again": False}
    notes = " ".join(closeness_facts(db, writer.run_id).notes)
    assert "Changes of perplexity that small hold for this build only: F16 on the GPU" in notes
