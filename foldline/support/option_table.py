"""The one registry of options: key, values, default, scopes, help, a row each.

Flags, YAML schema, documentation and error messages are made from `OPTIONS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from foldline.support.option_values import (
    Kind,
    byte_count,
    choice,
    number_from_one,
    pass_names,
    patterns,
    shape,
    switch,
)
from foldline.support.passes import LEVELS

Scope = Literal["graph", "session", "global"]
EVERYWHERE: tuple[Scope, ...] = ("graph", "session", "global")
OF_A_MODEL: tuple[Scope, ...] = ("graph", "session")

SHAPE_KEY = "inputs.<name>.shape"


@dataclass(frozen=True)
class OptionRow:
    """One option."""

    key: str
    """Canonical key; `ge.KEY` and the underscore spelling mean the same."""
    kind: Kind
    """Values it takes."""
    default: Callable[[str], Any] = field(repr=False)
    """Value at a level (`O0` … `O3`) when no scope sets it."""
    shown: str
    """The default, as help shows it."""
    help: str
    scopes: tuple[Scope, ...] = EVERYWHERE
    """Where it may be set."""

    @property
    def underscored(self) -> str:
        """`fold.maxBytes` as `fold_max_bytes`."""
        parts = ("_" + c.lower() if c.isupper() else c for c in self.key)
        return "".join(parts).replace(".", "_")


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _always(value: Any) -> Callable[[str], Any]:
    return lambda level: value


def _by_level(at_o0: Any, from_o1: Any) -> Callable[[str], Any]:
    return lambda level: at_o0 if level == "O0" else from_o1


_ROWS = (
    OptionRow(
        "oo.level",
        choice(*LEVELS, synonyms={"None": "O0", "Basic": "O1", "All": "O3"}),
        _always("O3"),
        "O3",
        "O0: as imported. O1: staged folding and dead code. O2: all that preserves bits. "
        "O3: also fusions that may move last bits.",
    ),
    OptionRow(
        "oo.constantFolding",
        switch(),
        _by_level(False, True),
        "true from O1",
        "The passes that compute constants.",
    ),
    OptionRow(
        "oo.deadCodeElimination",
        switch(),
        _by_level(False, True),
        "true from O1",
        "The passes that remove what no output depends on.",
    ),
    OptionRow(
        "mode",
        choice("fast", "exact"),
        _always("fast"),
        "fast",
        "fast: tuned kernels, the same bits for any number of threads. exact: kernels whose every "
        "rounding is defined, the same bits on any machine and at any level.",
    ),
    OptionRow(
        "memoryPolicy",
        choice("Default", "MemoryPriority"),
        _always("Default"),
        "Default",
        "MemoryPriority: no folding through a constant of more than 8 elements with other readers.",
    ),
    OptionRow(
        "weightStorage",
        choice("Float32", "Binary16", "BFloat16"),
        _always("Float32"),
        "Float32",
        "How weights of Conv, MatMul and Gemm are held while a model runs. The half types take "
        "half the memory and round each weight once; files keep weights as they are.",
    ),
    OptionRow(
        "fusion.half",
        choice("by-value", "skip-model"),
        _always("by-value"),
        "by-value",
        "by-value: a fusion whose kernel wants float32 leaves halves alone one by one. skip-model: "
        "no fusion in a model that holds values of half precision or less.",
    ),
    OptionRow(
        "weightClip",
        switch(),
        _always(False),
        "false",
        "Clip constants to the range of the narrower type they are cast to.",
    ),
    OptionRow("passes.enable", pass_names(), _always(()), "-", "Passes to run at any level."),
    OptionRow("passes.disable", pass_names(), _always(()), "-", "Passes not to run."),
    OptionRow(
        "fold.maxBytes",
        byte_count(),
        _always(64 * 1024),
        "64KiB",
        "A result larger than this and than its inputs is not folded.",
    ),
    OptionRow(
        "fold.graphOutputs",
        switch(),
        _always(False),
        "false",
        "Also fold operators that name an output of the model.",
    ),
    OptionRow(
        "fold.skip",
        patterns(),
        _always(()),
        "-",
        "What not to fold: node names, globs, op:TYPE, value:NAME, meta:KEY=VALUE.",
    ),
    OptionRow(
        SHAPE_KEY,
        shape(),
        _always(None),
        "-",
        "Pin the dimensions of an input; ? leaves one as it is.",
        OF_A_MODEL,
    ),
    OptionRow(
        "inputs.trustNames",
        switch(),
        _always(False),
        "false",
        "Dimensions of equal name are equal across inputs.",
    ),
    OptionRow(
        "freezeInitializers",
        switch(),
        _always(False),
        "false",
        "Initializers that a caller could override are constants.",
    ),
    OptionRow(
        "export.quantisation",
        choice("keep", "fold"),
        _always("keep"),
        "keep",
        "What the written file does with QuantizeLinear and DequantizeLinear of constants.",
    ),
    OptionRow(
        "export.grow",
        switch(),
        _always(False),
        "false",
        "Folding may make the file larger than fold.maxBytes allows.",
    ),
    OptionRow(
        "export.fused",
        choice("standard", "functions"),
        _always("standard"),
        "standard",
        "How fused operators are written: as the standard operators that they stand for, or, from "
        "IR version 8 on, as calls of functions that hold these.",
    ),
    OptionRow(
        "export.valueInfo",
        choice("keep", "all", "none"),
        _by_level("keep", "all"),
        "keep at O0, all from O1",
        "Types of inner values in the written file: the model's own, all inferred, or none.",
    ),
    OptionRow(
        "threads",
        number_from_one(),
        lambda level: usable_cores(),
        "all usable cores",
        "Threads that a session uses; results do not depend on it.",
    ),
)

OPTIONS: Mapping[str, OptionRow] = {row.key: row for row in _ROWS}
"""Every option by canonical key."""

PASS_TOGGLE = OptionRow("passes.<name>", switch(), _always(None), "-", "Run one pass, or not.")
"""What `passes.enable` and `passes.disable` say of one pass, merged scope by scope."""
