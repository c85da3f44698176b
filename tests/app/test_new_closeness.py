"""What a new benchmark asks about closeness and about code: caches as variants, when to stop, the sandbox."""

from dataclasses import replace

import pytest

from liob_core.models.variant import fake_variant
from liob_core.ui.setup.closeness_step import reference_name, with_caches
from tests.app.support import Open


def test_each_cache_is_a_variant_of_its_own_with_the_same_other_settings() -> None:
    chosen = [fake_variant("F16", bpw=16), fake_variant("Q4_K_M", bpw=4.8)]
    made = with_caches(chosen, ("f16", "q8_0"))
    assert [variant.label for variant in made] == [
        "F16 KV f16",
        "F16 KV q8_0",
        "Q4_K_M KV f16",
        "Q4_K_M KV q8_0",
    ]
    assert len({variant.key for variant in made}) == 4
    assert {variant.load_settings.flash_attn for variant in made} == {"on"}
    assert {variant.weights_sha256 for variant in made} == {variant.weights_sha256 for variant in chosen}


def test_one_plain_cache_changes_nothing() -> None:
    chosen = [fake_variant("F16", bpw=16), fake_variant("Q4_K_M", bpw=4.8)]
    assert with_caches(chosen, ("f16",)) == chosen
    assert with_caches(chosen, ()) == chosen


def test_a_file_not_read_whole_yet_still_gives_distinct_variants() -> None:
    variant = replace(fake_variant("F16", bpw=16), weights_sha256=None, key="embedded:/models/large.gguf")
    keys = {one.key for one in with_caches([variant], ("f16", "q8_0", "q4_0"))}
    assert len(keys) == 3


def test_the_reference_is_named_by_its_file_since_labels_change() -> None:
    chosen = [replace(fake_variant("F16", bpw=16), engine_model="/models/a.gguf")]
    assert reference_name(chosen, "F16") == "/models/a.gguf"
    assert reference_name(chosen, None) is None


@pytest.mark.usefixtures("without_sample")
def test_closeness_can_stop_early_and_compare_caches(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.ui.setup.work_step.check_add_on", lambda: None)
    asked: list[dict[str, object]] = []

    def ask(*_: object, **choices: object) -> None:
        asked.append(choices)

    monkeypatch.setattr("liob_core.ui.setup.closeness_step.make_ask", ask)
    app = open_page("new")
    app.pills(key="liob_new_tasks").set_value(["closeness"]).run()
    assert not app.exception
    assert app.pills(key="liob_new_caches").value == ["f16"]
    assert (asked[-1]["n_windows"], asked[-1]["stop_half_width"]) == (32, None)
    app.number_input(key="liob_new_windows").set_value(0)
    app.number_input(key="liob_new_stop").set_value(0.5).run()
    assert not app.exception
    assert (asked[-1]["n_windows"], asked[-1]["stop_half_width"]) == (None, 0.005)


@pytest.mark.usefixtures("without_sample")
def test_code_is_run_only_where_it_is_allowed_and_limits_are_told(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "liob_core.ui.setup.code_step.code_note",
        lambda _, *, allow_code: (
            "without a limit on: network" if allow_code else "1 prompts will stay unchecked"
        ),
    )
    app = open_page("new")
    assert not app.exception
    assert not any(box.key == "liob_new_allow_code" for box in app.checkbox)
    app.selectbox(key="liob_new_suite").set_value("code").run()
    assert not app.exception
    assert app.checkbox(key="liob_new_allow_code").value is False
    assert any("stay unchecked" in caption.value for caption in app.caption)
    app.checkbox(key="liob_new_allow_code").check().run()
    assert any("without a limit on: network" in caption.value for caption in app.caption)
