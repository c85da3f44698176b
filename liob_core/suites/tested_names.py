"""Which names a suite's unit tests expect of an answer."""

import ast
import builtins

OFFERED = frozenset({"raises"})  # what tests may use besides Python's own names and the answer's


def names_to_define(tests: ast.Module) -> tuple[str, ...]:
    """The names that the tests use and neither define nor find in Python, in order of their use."""
    used: dict[str, None] = {}
    bound = set(dir(builtins)) | OFFERED
    for node in ast.walk(tests):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = None
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=asname):
                bound.add((asname or name).split(".")[0])
    return tuple(name for name in used if name not in bound)
