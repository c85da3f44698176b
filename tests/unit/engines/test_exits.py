import pytest

from liob_core.engines.exits import explain_exit


@pytest.mark.parametrize(
    ("code", "before", "after", "words"),
    [
        (-9, 3, 4, "out of memory (the system's count"),
        (-9, 3, 3, "counted no kill"),
        (-9, None, None, "possibly out of memory"),
        (-4, 0, 0, "signal 4: this processor lacks an instruction"),
        (-6, 0, 0, "signal 6: the engine aborted"),
        (-7, 0, 0, "signal 7: the model file was changed"),
        (-15, 0, 0, "ended by signal 15"),
        (1, 0, 0, "ended with code 1"),
    ],
)
def test_explain_exit_tells_signal_and_cause(code, before, after, words):
    assert words in explain_exit(code, before, after)
