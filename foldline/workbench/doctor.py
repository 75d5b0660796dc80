"""What computes on this machine, and whether it computes right: `foldline doctor`."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, cast

import numpy as np
import threadpoolctl

import foldline
import foldline.kernels
from foldline.kernels.blas import libraries
from foldline.kernels.exact_products import einsum_is_exact
from foldline.kernels.registry import all_kernels
from foldline.stages.folding.engine import GROUP, HostEngine
from foldline.support.debug_options import VARIABLE
from foldline.support.options import USER_FILE_VARIABLE
from foldline.support.versions import NOT_INSTALLED, PACKAGES, version_of
from foldline.workbench.self_test import attempted, self_test

assert foldline.kernels, "importing it registers the kernels"

Status = Literal["ok", "note", "fault"]

OPTIONAL = {
    "pillow": ("image", "decodes images (ImageDecoder)"),
    "textual": ("gui", "draws foldline gui"),
    "onnxruntime": ("bench", "is compared with by the benchmarks"),
}
"""Packages that something wants: the extra that brings them, and what they are for."""

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """One line of the examination."""

    group: str
    name: str
    value: str
    status: Status = "ok"
    advice: str = ""
    """What to do; empty where all is well."""


def examine(*, self_tests: bool = True) -> list[Finding]:
    """Look at everything; a finding whose status is `fault` needs the user."""
    found = [*_environment(), *_packages(), *_blas(), *_processor(), *_kernels()]
    found += [*_engines(), *_exact_mode()]
    return [*found, *(_self_tests() if self_tests else ())]


def _environment() -> Iterator[Finding]:
    group = "environment"
    yield Finding(group, "python", f"{platform.python_version()}, {sys.executable}")
    yield Finding(group, "system", platform.platform())
    yield Finding(group, "processors", str(os.cpu_count()))
    for name in (VARIABLE, USER_FILE_VARIABLE, *THREAD_VARIABLES):
        if value := os.environ.get(name):
            yield Finding(group, name, value, "note", "it changes what Foldline does; unset it")


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        found = version_of(name)
        if found != NOT_INSTALLED:
            yield Finding("packages", name, found)
        elif name == "foldline":
            yield Finding("packages", name, f"{foldline.__version__}, run from its source")
        else:
            advice = f"pip install {name}, or reinstall foldline, which needs it"
            yield Finding("packages", name, found, "fault", advice)
    for name, (extra, purpose) in OPTIONAL.items():
        found = version_of(name)
        advice = f"it {purpose}: pip install 'foldline[{extra}]'"
        missing = found == NOT_INSTALLED
        yield (
            Finding("packages", name, found, "note", advice)
            if missing
            else Finding("packages", name, found)
        )


def _blas() -> Iterator[Finding]:
    controller = cast(Any, threadpoolctl.ThreadpoolController()).select(user_api="blas")
    rows: list[dict[str, Any]] = controller.info()
    for row in rows:
        layer = row.get("threading_layer", "unknown threads")
        kind = f"{row['internal_api']} {row['version']}"
        architecture = row.get("architecture", "unknown architecture")
        text = f"{kind} for {architecture}, {row['num_threads']} threads ({layer})"
        yield Finding("blas", row["prefix"], text)
    limited = len(libraries())
    if rows and limited == len(rows):
        yield Finding("blas", "limit", "held to one thread while models run")
        return
    advice = (
        "Foldline cannot hold this BLAS to one thread, so that runs may be slow and last bits may "
        "move with the number of threads: set OPENBLAS_NUM_THREADS=1 or the like"
    )
    yield Finding("blas", "limit", f"{limited} of {len(rows)} libraries", "note", advice)


def _processor() -> Iterator[Finding]:
    yield Finding("cpu", "machine", f"{platform.machine()}, {sys.byteorder} endian")
    simd = cast("dict[str, Any]", np.show_config(mode="dicts")).get("SIMD Extensions", {})
    for kind in ("baseline", "found", "not found"):
        yield Finding("cpu", f"simd {kind}", ", ".join(simd.get(kind, ())) or "-")
    tiny = np.float32(1e-40)
    if float(tiny + np.float32(0)) == 0:
        advice = (
            "subnormal numbers become 0: a library in this process was built with -ffast-math; "
            "import foldline in a process without it"
        )
        yield Finding("cpu", "subnormals", "flushed to zero", "fault", advice)
    else:
        yield Finding("cpu", "subnormals", "kept")


def _kernels() -> Iterator[Finding]:
    grades = Counter(entry.grade for entry in all_kernels())
    for grade, count in sorted(grades.items()):
        operators = {(e.domain, e.op_type) for e in all_kernels() if e.grade == grade}
        yield Finding("kernels", grade, f"{count} for {len(operators)} operators")


def _engines() -> Iterator[Finding]:
    """The folding engines in the order in which they are asked; each is loaded."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        fault = attempted(partial(_loaded, entry))
        advice = fault and f"no model can be compiled: uninstall the package that has it ({fault})"
        yield Finding("engines", entry.name, entry.value, "fault" if fault else "ok", advice)
    yield Finding("engines", HostEngine.name, "the kernels that run models")


def _loaded(entry: EntryPoint) -> str:
    entry.load()()
    return ""


def _exact_mode() -> Iterator[Finding]:
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        name = f"{dtype} products"
        if einsum_is_exact(dtype):
            yield Finding("exact mode", name, "einsum: it rounds each step here")
        else:
            advice = "right, but slow: this NumPy fuses multiplications and additions"
            yield Finding("exact mode", name, "updates of rank 1", "note", advice)


def _self_tests() -> Iterator[Finding]:
    for name, fault in self_test():
        if fault:
            advice = (
                f"{fault}; reinstall foldline and numpy, and if it stays report this with the "
                "output of foldline doctor --json"
            )
            yield Finding("self test", name, "wrong", "fault", advice)
        else:
            yield Finding("self test", name, "right")
