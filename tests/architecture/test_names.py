"""One name for all: file, class, pass and test of a pass carry the same name.

`constant_folding.py` holds the class `ConstantFolding`, whose `INFO.name` is `constant-folding`,
and `tests/stages/passes/<folder>/test_constant_folding.py` tests it. Files that begin with an
underscore, and those beside the folders of passes, hold no pass.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.tree import ROOT

PASSES = Path("stages/passes")


def pass_files(root: Path) -> Iterator[Path]:
    """The files that must hold a pass, relative to the root."""
    for file in sorted((root / PASSES).glob("*/**/*.py")):
        if not file.name.startswith("_"):
            yield file.relative_to(root)


def violations(root: Path, load: Callable[[Path], ModuleType]) -> Iterator[str]:
    """What is not named as its file is."""
    for file in pass_files(root):
        module = load(file)
        class_name = "".join(word.capitalize() for word in file.stem.split("_"))
        pass_class = getattr(module, class_name, None)
        info = getattr(pass_class, "INFO", None) or getattr(module, "INFO", None)
        if not isinstance(pass_class, type):
            yield f"{file}: has no class {class_name}"
        name = file.stem.replace("_", "-")
        if getattr(info, "name", None) != name:
            yield f"{file}: INFO.name is {getattr(info, 'name', None)!r}, not {name!r}"
        test = Path("tests") / file.parent / f"test_{file.stem}.py"
        if not (root / test).is_file():
            yield f"{file}: {test} is missing"


def _load_installed(file: Path) -> ModuleType:
    return importlib.import_module(".".join(("foldline", *file.with_suffix("").parts)))


def test_a_pass_has_one_name() -> None:
    assert not list(violations(ROOT, _load_installed))


RIGHT = """
class INFO:
    name = "drop-nothing"

class DropNothing:
    pass
"""


@pytest.mark.parametrize(
    ("source", "has_test", "message"),
    [
        (RIGHT, True, None),
        (RIGHT.replace("DropNothing", "DropAll"), True, "has no class DropNothing"),
        (RIGHT.replace("drop-nothing", "drop_nothing"), True, "'drop_nothing', not 'drop-nothing'"),
        (RIGHT.replace("INFO", "OTHER"), True, "None, not 'drop-nothing'"),
        (RIGHT, False, "test_drop_nothing.py is missing"),
    ],
)
def test_the_check_sees(tmp_path: Path, source: str, has_test: bool, message: str | None) -> None:
    def load(file: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location("synthetic", tmp_path / file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    folder = PASSES / "cleanup"
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "__init__.py").touch()
    (tmp_path / folder / "_helpers.py").touch()
    (tmp_path / folder / "drop_nothing.py").write_text(source)
    if has_test:
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_drop_nothing.py").touch()
    found = list(violations(tmp_path, load))
    assert len(found) == (message is not None)
    assert message is None or found[0].endswith(message)
