"""Two models in one run on the real worker: each is prompted with its own template, and checks pair them."""

from dataclasses import replace

from liob_core.analysis.recommend import recommend
from liob_core.analysis.results import warnings
from liob_core.bench import jobs
from liob_core.config import Settings
from liob_core.models.variant import fake_variant
from liob_core.store.database import query
from liob_core.types import Task, Variant
from tests.integration.test_worker import wait_for_end
from tests.unit.bench.builders import make_fake_spec, make_suite


def variant(label: str, bpw: float, n_layers: int, *, templated: bool) -> Variant:
    made = fake_variant(label, bpw=bpw)
    assert made.model is not None
    shaped = replace(made.model, n_layers=n_layers, has_chat_template=templated)
    return replace(made, model=shaped)


def test_each_model_gets_its_own_template_and_one_of_them_is_recommended(settings: Settings) -> None:
    spec = make_fake_spec(
        variants=(
            variant("Small F16", 16.0, 4, templated=False),
            variant("Small Q4_0", 4.5, 4, templated=False),
            variant("Big Q4_0", 4.6, 8, templated=True),
        ),
        reference="Small F16",
        tasks=(Task.SUITE,),
        suite=make_suite(3),
        n_blocks=1,
        engine_options={"sleep": False, "answers": {"What is 1 + 1": "2"}},
    )
    jobs.start(spec, settings)
    assert wait_for_end(spec.run_id, settings).state == "finished"

    asked = query(
        settings.database, "SELECT variant, prompt FROM samples WHERE prompt_id IS NOT NULL AND NOT warmup"
    )
    is_templated = asked["prompt"].str.startswith("<|")
    assert is_templated.groupby(asked["variant"]).agg(["min", "max"]).to_dict("index") == {
        "Small F16": {"min": False, "max": False},
        "Small Q4_0": {"min": False, "max": False},
        "Big Q4_0": {"min": True, "max": True},
    }
    found = recommend(settings.database, spec.run_id)
    assert [(one.variant, [each.metric for each in one.evidence]) for one in found.candidates] == [
        ("Small F16", ["pass_rate"]),
        ("Small Q4_0", ["pass_rate"]),
        ("Big Q4_0", ["pass_rate"]),
    ]
    told = warnings(settings.database, spec.run_id)
    assert any("The 2 models of this run were each prompted with their own template" in one for one in told)
    assert not any("did not reach every variant" in one for one in told)
