"""Code is found in whatever shape a model puts it."""

import textwrap

import pytest

from liob_core.quality.code.extract import extract_python

ADD = "def add(a, b):\n    return a + b\n"


def extract(answer: str, *wanted: str) -> str | None:
    return extract_python(textwrap.dedent(answer).strip("\n"), wanted or ("add",))


def value(code: str | None, expression: str = "add(2, 3)") -> object:
    space: dict[str, object] = {}
    exec(compile(code or "", "<code>", "exec"), space)
    return eval(expression, space)


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{ADD}```",
        f"Sure! Here it is:\n\n```python\n{ADD}```\n\nIt adds `a` and `b`.",
        f"```\n{ADD}```",
        f"```Python\n{ADD}```",
        f"``` python\n{ADD}```",
        f"```py\n{ADD}```",
        f"```python3\n{ADD}```",
        f'```python title="add.py"\n{ADD}```',
        f"```{{.python .numberLines}}\n{ADD}```",
        f"~~~python\n{ADD}~~~",
        f"`````python\n{ADD}`````",
        f"```python\n{ADD}",
        f"```python\n{ADD}``",
        f"```python\r\n{ADD}```\r\n".replace("\n", "\r\n"),
        ADD,
        f"Here is the function:\n\n{ADD}\nIt returns the sum.",
        f"Here is the function:\n{ADD}\nif you pass two numbers, you get their sum.",
    ],
)
def test_extract_finds_one_function(answer: str) -> None:
    code = extract_python(answer, ["add"])
    assert code is not None
    assert code.strip().replace("``", "").strip() == ADD.strip()


def test_extract_of_a_fence_inside_a_list_loses_the_indentation() -> None:
    answer = """
        1. Write the function:

           ```python
           def add(a, b):
               total = a + b

               return total
           ```

        2. Call it.
    """
    assert value(extract(answer)) == 5
    bulleted = "- ```python\n  def add(a, b):\n      return a + b\n  ```\n"
    assert value(extract(bulleted)) == 5
    with_tabs = "\t```python\n\tdef add(a, b):\n\t    return a + b\n\t```\n"
    assert value(extract(with_tabs)) == 5


def test_extract_of_a_quoted_fence_loses_the_marks() -> None:
    assert value(extract("> ```python\n> def add(a, b):\n>     return a + b\n> ```\n")) == 5


def test_extract_takes_the_last_fence_that_defines_the_name() -> None:
    answer = """
        First try:
        ```python
        def add(a, b):
            return a - b
        ```
        That is wrong. Corrected:
        ```python
        def add(a, b):
            return a + b
        ```
        Usage:
        ```python
        print(add(1, 2))
        ```
        Output:
        ```
        3
        ```
    """
    code = extract(answer)
    assert value(code) == 5
    assert "print" not in (code or "")


def test_extract_brings_along_what_an_earlier_fence_defines() -> None:
    answer = """
        ```python
        from functools import reduce as fold
        import operator
        ```
        ```python
        class Unused:
            pass
        ```
        ```python
        BASE = 10
        ```
        ```python
        def add(*numbers):
            return fold(operator.add, numbers) + BASE
        ```
    """
    code = extract(answer)
    assert value(code) == 15
    assert "Unused" not in (code or "")


def test_extract_leaves_example_data_of_an_earlier_fence_out() -> None:
    answer = f"```python\na = int(input())\nb = 2\n```\n```python\n{ADD}```"
    assert extract(answer) == ADD


def test_extract_joins_names_from_several_fences() -> None:
    sub = "def sub(a, b):\n    return a - b\n"
    answer = f"```python\n{ADD}```\nand\n```python\n{sub}```"
    assert value(extract(answer, "add", "sub"), "add(5, sub(3, 1))") == 7


def test_extract_prefers_python_to_other_languages() -> None:
    others = "```javascript\nfunction add(a, b) {}\n```\n```text\n5\n```"
    answer = f"```bash\npip install add\n```\n```python\n{ADD}```\n{others}"
    assert extract(answer) == ADD


def test_extract_of_a_wrongly_named_fence_is_better_than_nothing() -> None:
    assert extract(f"```ruby\n{ADD}```") == ADD


def test_extract_looks_on_where_the_likeliest_fences_define_nothing() -> None:
    unnamed = f"```\n{ADD}```\nCall it so:\n```python\nprint(add(1, 2))\n```"
    assert extract(unnamed) == ADD
    bare = f"{ADD}\nIt prints:\n```\n3\n```"
    assert extract(bare) == ADD


def test_extract_of_a_fence_within_a_wrapper() -> None:
    assert extract(f"````markdown\nText\n```python\n{ADD}```\nmore\n````") is not None
    assert value(extract(f"```markdown\nText\n```python\n{ADD}```\nmore\n```")) == 5
    assert value(extract(f"```python\nbroken = \n```python\n{ADD}```")) == 5


def test_extract_keeps_backticks_inside_of_the_code() -> None:
    answer = '''
        ```python
        def add(a, b):
            """Add.

            ```python
            add(1, 2)
            ```
            """
            return a + b  # not `a - b`

        def fence():
            return "```"
        ```
        Done.
    '''
    code = extract(answer)
    assert value(code) == 5
    assert value(code, "fence()") == "```"
    assert "Done" not in (code or "")
    longer = "````python\ndef add(a, b):\n    '''\n```\nx\n```\n'''\n    return a + b\n````"
    assert value(extract(longer)) == 5


def test_extract_of_a_session_keeps_what_was_typed() -> None:
    answer = """
        ```pycon
        >>> def add(a, b):
        ...     return a + b
        ...
        >>> add(1, 2)
        3
        >>>
        ```
    """
    assert value(extract(answer)) == 5
    assert value(extract(answer.replace("```pycon", "").replace("```", ""))) == 5
    ipython = "```python\nIn [1]: add = lambda a, b: a + b\nOut[1]: nothing\n```"
    assert value(extract(ipython)) == 5


def test_extract_of_bare_code_leaves_sentences_out() -> None:
    answer = """
        To solve this, import nothing special. Here we go:

        import math

        LIMIT = 3

        @staticmethod
        def helper(x):
            # nothing

            return x

        def add(a, b):
            return math.floor(a + b)

        print(add(1, 2))
        for i in range(2):
            print(i)
        This function works for all numbers (even negative ones).
        Note: it needs math.
    """
    code = extract(answer)
    assert value(code) == 5
    assert "This function" not in (code or "")
    assert "To solve" not in (code or "")


@pytest.mark.parametrize(
    "answer", ["", "   \n", "I cannot help with that.", "```python\n```", "```\n\n```", "Use a + b."]
)
def test_extract_without_code_is_none(answer: str) -> None:
    assert extract_python(answer, ["add"]) is None


@pytest.mark.parametrize(
    "answer",
    [
        *("`" * 100_000, "```\n" * 20_000, ">" * 50_000 + "```python", "(" * 100_000, "def " * 50_000),
        *("\ud800```python\nx", "1." * 50_000, " " * 100_000 + "x", "a" * 100_000 + "(", ">>> " * 20_000),
        *("[" * 50_000 + "=", "- " * 50_000, "x = " * 30_000, "x: " + " " * 100_000 + "y"),
        "```python\na1 = 1\n```\n" * 5_000,
    ],
    ids=range(15),
)
@pytest.mark.timeout(20)
def test_extract_of_noise_ends_soon(answer: str) -> None:
    for text in (answer, f"def add(a, b):\n    return 1\n{answer}", f"```python\n{answer}\n```"):
        extract_python(text, ["add", "other"])
