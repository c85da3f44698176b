import pytest

from liob_core.models.hub_origin import HubOrigin, hub_origin

COMMIT = "1234567890abcdef1234567890abcdef12345678"


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        (
            f"/c/models--Qwen--Qwen2.5-GGUF/snapshots/{COMMIT}/a/q4.gguf",
            HubOrigin("Qwen/Qwen2.5-GGUF", COMMIT),
        ),
        (f"C:\\c\\models--gpt2\\snapshots\\{COMMIT}\\q4.gguf", HubOrigin("gpt2", COMMIT)),
        (f"/c/models--a--b/blobs/{COMMIT}", None),
        (f"/c/datasets--a--b/snapshots/{COMMIT}/q4.gguf", None),
        ("/c/models--a--b/snapshots/main/q4.gguf", None),
        ("/home/me/q4.gguf", None),
    ],
)
def test_origin_is_told_by_where_a_file_lies(path: str, origin: HubOrigin | None) -> None:
    assert hub_origin(path) == origin
