"""What the architecture tests share: the folders, and how to read imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("configs", "dialects", "kernels", "lowering", "stages")
"""The root folders that are subpackages of `foldline`."""


def product_files(root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """Module name and file of every Python file that ships."""
    for folder in ("foldline", *LINKED):
        for file in sorted((root / folder).rglob("*.py")):
            relative = file.relative_to(root)
            if folder == "foldline" and relative.parts[1] in LINKED:
                continue  # met through a link
            parts = relative.with_suffix("").parts
            parts = parts if folder == "foldline" else ("foldline", *parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def imported_modules(module: str, file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, wherever in the file.

    `from a import b` gives both `a` and `a.b`, since b may be a module.
    """
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield node.lineno, base
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def is_within(module: str, package: str) -> bool:
    """Whether a module is a package or lies below it."""
    return module == package or module.startswith(f"{package}.")
