"""The wheel holds the package, all of it, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.tree import LINKED, ROOT, product_files

pytestmark = pytest.mark.slow
NOT_SOURCE = (".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy: building writes into the tree, and ships what an old build left there."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(source.parent)]
    result = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (file,) = source.parent.glob("foldline-*.whl")
    return file


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_only_the_package_is_at_the_top(wheel: Path) -> None:
    top = {name.partition("/")[0] for name in _names(wheel)}
    assert {name for name in top if not name.endswith(".dist-info")} == {"foldline"}
    assert not [name for name in _names(wheel) if "tests" in name.split("/")]


def test_every_module_and_data_file_is_in(wheel: Path) -> None:
    names = set(_names(wheel))
    for module, file in product_files():
        path = module.replace(".", "/")
        assert (f"{path}/__init__.py" if file.name == "__init__.py" else f"{path}.py") in names
    assert "foldline/py.typed" in names
    for config in (ROOT / "configs").glob("*.yaml"):
        assert f"foldline/configs/{config.name}" in names
    for folder in ("assets", "templates"):
        for file in (ROOT / "foldline" / "workbench" / folder).iterdir():
            assert f"foldline/workbench/{folder}/{file.name}" in names


def test_the_wheel_runs_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    packages = ", ".join(f"foldline.{name}" for name in LINKED)
    result = subprocess.run(
        [sys.executable, "-c", f"import foldline, {packages}; print(foldline.__file__)"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == str(tmp_path / "foldline" / "__init__.py"), result.stderr
