"""The folders, the links and the lists of pyproject.toml agree."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import LINKED, ROOT, product_files


def _setuptools() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def _folders_with_python() -> Iterator[str]:
    for module, file in product_files():
        yield module if file.name == "__init__.py" else module.rpartition(".")[0]


def test_packages_are_the_folders() -> None:
    packages = _setuptools()["packages"]
    assert packages == sorted(packages)
    assert packages == sorted(set(_folders_with_python()))


def test_every_package_has_an_init_file() -> None:
    packages = {module for module, file in product_files() if file.name == "__init__.py"}
    assert packages == set(_folders_with_python())


def test_every_root_folder_is_a_subpackage() -> None:
    expected = {"foldline": "foldline"} | {f"foldline.{name}": name for name in LINKED}
    assert _setuptools()["package-dir"] == expected


@pytest.mark.parametrize("name", LINKED)
def test_links_let_the_source_tree_run_uninstalled(name: str) -> None:
    link = ROOT / "foldline" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..", name)


def test_typing_marker_ships() -> None:
    assert (ROOT / "foldline" / "py.typed").is_file()
    assert "py.typed" in _setuptools()["package-data"]["foldline"]
