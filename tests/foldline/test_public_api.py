"""What is public, with its signatures, is what `public_api.txt` says; all of it is documented.

`python -m tests.foldline.test_public_api` accepts a change: it writes the file anew. Say it in
CHANGELOG.md, too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).with_name("public_api.txt")
ACCEPT = "run python -m tests.foldline.test_public_api to accept it, and say it in CHANGELOG.md"
MODULES: dict[str, tuple[str, ...]] = {
    "foldline": (),
    "foldline.transforms": (),
    "foldline.workbench.breakpoints": ("Breakpoint",),
    "foldline.workbench.console": ("Console",),
    "foldline.workbench.difference": ("Changed", "Difference", "Removed", "difference"),
    "foldline.workbench.nodes": ("Node",),
    "foldline.workbench.saved_steps": ("load", "save"),
    "foldline.workbench.stepper": ("Stepper",),
}
"""Modules, and the names in them that are public: those of `__all__` where none are said."""


def public() -> Iterator[tuple[str, Any]]:
    for module_name, names in MODULES.items():
        module = import_module(module_name)
        for name in sorted(names or module.__all__):
            yield f"{module_name}.{name}", getattr(module, name)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class itself, or a base of Foldline's, defines, as `vars` has it."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("foldline"):
            found.update(vars(base))
    for name, member in sorted(found.items()):
        if name == "__init__" and not is_dataclass(cls):
            yield name, member
        elif not name.startswith("_") and not inspect.isdatadescriptor(inspect.unwrap(member)):
            yield name, member
        elif isinstance(member, property) and not name.startswith("_"):
            yield name, member


def lines() -> Iterator[str]:
    for path, value in public():
        if isinstance(value, type):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            yield f"class {path}" + (f"({bases})" if bases else "")
            if is_dataclass(value):
                yield from (f"    {field.name}: {field.type}" for field in fields(value))
            known = {field.name for field in fields(value)} if is_dataclass(value) else set()
            for name, member in members(value):
                if name not in known:
                    yield f"    {_member(name, member)}"
        elif callable(value) and not isinstance(value, partial):
            yield f"def {path}{_signature(value)}"
        else:
            yield f"{path}: {type(value).__name__}"


def _member(name: str, member: Any) -> str:
    if isinstance(member, property | cached_property):
        getter = member.fget if isinstance(member, property) else member.func
        returned = inspect.signature(getter).return_annotation  # type: ignore[arg-type]
        return f"{name} -> {returned}"
    if isinstance(member, classmethod | staticmethod):
        return f"{type(member).__name__} {name}{_signature(member.__func__)}"
    return f"{name}{_signature(member)}" if callable(member) else name


def _signature(function: Any) -> str:
    """Annotations without quotes, functions by their names."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", text)


def test_what_is_public_is_as_it_was_accepted() -> None:
    assert list(lines()) == GOLDEN.read_text().splitlines(), ACCEPT


@pytest.mark.parametrize(
    ("path", "value"), [pytest.param(path, value, id=path) for path, value in public()]
)
def test_all_of_it_is_documented(path: str, value: Any) -> None:
    if not isinstance(value, type):
        assert not callable(value) or inspect.getdoc(value), path
        return
    own = vars(value).get("__doc__") or ""
    assert own.strip(), path
    assert not own.startswith(f"{value.__name__}("), f"{path}: what a dataclass says by itself"
    for name, member in members(value):
        function = member.func if isinstance(member, cached_property) else member
        is_function = callable(function) or isinstance(
            function, property | classmethod | staticmethod
        )
        if is_function and name != "__init__":
            assert inspect.getdoc(function), f"{path}.{name}"


def test_a_change_would_be_seen() -> None:
    accepted = GOLDEN.read_text().splitlines()
    assert any(line.startswith("def foldline.compile(") for line in accepted)
    assert "class foldline.InvalidModel(FoldlineError)" in accepted
    assert any(line.startswith("    run(self, output_names") for line in accepted)
    assert any(line.startswith("    undo(self) -> ") for line in accepted)


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(lines()) + "\n")
