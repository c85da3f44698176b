import json

import pytest

from liob_core.cli.flips import print_flips
from liob_core.errors import UsageError
from tests.unit.analysis.conftest import RUN
from tests.unit.analysis.test_flips import fill


def test_flips_are_printed_with_their_sentences_and_the_command_that_tells_more(writer, capsys):
    path = fill(writer, {"F16": "ppppffffffff", "Q2_K": "fpppfffffppp"})
    print_flips(path, RUN, as_json=False)
    printed = capsys.readouterr().out
    assert "1 of 12" in printed
    assert "3 of 12" in printed
    assert "chance explains that win." in printed
    assert "--seeds 5" in printed


def test_flips_as_json_are_one_document(writer, capsys):
    path = fill(writer, {"F16": ["ppf"] * 4, "Q2_K": ["pff"] * 4}, n_seeds=3, temperature=0.8)
    print_flips(path, RUN, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["facts"]["n_seeds"] == 3
    [row] = told["variants"]
    assert (row["variant"], row["seed_estimate"]) == ("Q2_K", pytest.approx(-1 / 3))


def test_a_run_without_checked_answers_says_what_to_run(writer):
    path = fill(writer, {"F16": "--", "Q2_K": "--"})
    with pytest.raises(UsageError, match="run a suite with checks"):
        print_flips(path, RUN, as_json=False)
