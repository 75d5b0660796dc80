"""The versions of what computes: for reports of faults."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("foldline", "numpy", "onnx", "xdsl", "ml_dtypes", "threadpoolctl")
NOT_INSTALLED = "not installed"


def version_lines() -> list[str]:
    """Python, the system, and the packages, a line each."""
    lines = [f"python {platform.python_version()}", platform.platform()]
    return lines + [f"{name} {version_of(name)}" for name in PACKAGES]


def version_of(package: str) -> str:
    """The installed version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED
