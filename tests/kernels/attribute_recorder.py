"""A pytest plugin that writes which attributes tests give to kernels.

    python -m pytest -p tests.kernels.attribute_recorder --record-attributes FILE TEST...

writes a line `domain operator attribute` for each that is not at its default, unless the call
failed.
"""

import functools
import inspect
import sys
from pathlib import Path

import foldline.kernels  # noqa: F401
from foldline.kernels.registry import RESERVED, all_kernels

_seen = set()
_running = []
"""Kernels that run: what one gives to another is not what a test gives."""


def pytest_addoption(parser):
    parser.addoption("--record-attributes", type=Path)


def pytest_configure():
    """Before any test module imports a kernel by name."""
    for function, entries in _kernels_by_function().items():
        recording = _recording(function, entries)
        for entry in entries:
            object.__setattr__(entry, "function", recording)
        home = vars(sys.modules[function.__module__])
        if home.get(function.__name__) is function:
            home[function.__name__] = recording


def pytest_sessionfinish(session):
    lines = sorted(" ".join(row) for row in _seen)
    session.config.getoption("--record-attributes").write_text("\n".join(lines))


def _kernels_by_function():
    found = {}
    for entry in all_kernels():
        found.setdefault(entry.function, []).append(entry)
    return found


def _recording(function, entries):
    defaults = {p.name: repr(p.default) for p in inspect.signature(function).parameters.values()}

    @functools.wraps(function)
    def recording(*inputs, **keywords):
        _running.append(function)
        try:
            result = function(*inputs, **keywords)
        finally:
            _running.pop()
        for name, value in keywords.items():
            if not _running and name not in RESERVED and repr(value) != defaults[name]:
                _seen.update((e.domain or "ai.onnx", e.op_type, name) for e in entries)
        return result

    return recording
