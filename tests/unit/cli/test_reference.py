from liob_core.cli.reference import REFERENCE_FILE, reference_markdown


def test_reference_file_is_what_the_code_says() -> None:
    assert REFERENCE_FILE.read_text(encoding="utf-8") == reference_markdown(), (
        "run `python -m liob_core reference --write`"
    )
