import pytest

from liob_core.store.scrub import scrub


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot open /home/jane/models/a.gguf: no such file", "cannot open a.gguf: no such file"),
        ("see '/mnt/disk 1/x' or /srv/data/b.gguf.", "see 'disk 1/x' or b.gguf."),
        (r"cannot open C:\Users\Jane Doe\models\a.gguf", "cannot open a.gguf"),
        (r'{"model": "C:\\Users\\Jane\\a.gguf"}', '{"model": "a.gguf"}'),
        ('{"model": "D:/models/a.gguf", "n": 1}', '{"model": "a.gguf", "n": 1}'),
        ("/home/jane doe/models/a.gguf", "a.gguf"),
        ("/Users/jane/a.gguf", "a.gguf"),
        ("http://box.lan:8080/health refused", "http://(host)/health refused"),
        ("load of box failed", "load of (name) failed"),
        ("boxes and tokens/s, 1/2, and/or", "boxes and tokens/s, 1/2, and/or"),
        ("POST /completion answered 500", "POST /completion answered 500"),
        ("/data/my models/q4.gguf is not a model", "q4.gguf is not a model"),
        ('{"a": "line\\nnext\\tcolumn"}', '{"a": "line\\nnext\\tcolumn"}'),
    ],
)
def test_scrub_leaves_no_path_host_or_name_and_keeps_the_rest(text: str, clean: str) -> None:
    assert scrub(text, {"/data/my models", "/mnt/other"}, {"box", "jane"}) == clean
