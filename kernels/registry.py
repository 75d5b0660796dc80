"""The one table of kernels: which NumPy function computes which operator at which version.

A kernel is a *plain function* or a *maker*.

* Plain: `def add(a, b, *, out=None)`: arrays in the operator's input order, `None` for an absent
  optional input; ONNX attributes as keyword-only parameters under their ONNX names.
* Maker (`@maker`): the same signature, but positional parameters are `Operand`s (shape, dtype, and
  the value if it is constant) and it returns the closure, or `Step`, that computes. What depends
  only on static facts is decided once, when a plan is made.

A kernel returns one array, or a tuple when the operator has more than one output (absent ones
may be left out at the end). It never writes to its inputs. What it returns may alias an input only
when it is registered with `view=True`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Grade = Literal["reference", "fast", "exact"]
Function = TypeVar("Function", bound=Callable[..., Any])

GRADES: dict[str, tuple[Grade, ...]] = {"fast": ("fast", "reference"), "exact": ("exact",)}
"""The grades that serve a mode, preferred ones first. Exact mode knows no second choice."""

LATEST = 1 << 30
RESERVED = ("out", "scratch", "output_count", "output_dtypes")
"""Keyword-only parameters that are not ONNX attributes.

`out`: destination for the (first) result, of its exact shape and dtype, C-contiguous, or None.
`scratch`: of a plain kernel, memory for one array like `out`, or None; makers have `Step` for that.
`output_count`: how many outputs the node names (trailing absent ones not counted).
`output_dtypes`: NumPy dtypes of the outputs where type inference knows them, else None."""


@dataclass(frozen=True)
class Operand:
    """What a maker may know of an input when the plan is made."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    value: Array | None = None
    """The array, when it is constant for the life of the plan; read-only."""
    channels_last: bool = False
    """Whether its channels are innermost in memory, see `foldline.kernels.channels_last`."""


@dataclass(frozen=True)
class Step:
    """What a maker returns when the plain closure is not all: a closure and the memory it needs."""

    run: Callable[..., Any]
    """Takes the arrays in input order, `out=` where the maker's signature has `out`, and
    `scratch=`, a 64-byte aligned uint8 vector of `scratch_bytes`, when that is not zero."""
    scratch_bytes: int = 0
    channels_last: bool = False
    """Whether `out` had best be an array whose channels are innermost in memory."""
    bind: Callable[..., Callable[[], Any]] | None = None
    """Given what `run` is given, `out` included, when that will not move: what computes on it.
    Views are taken once; on a few elements they take longer than the arithmetic."""


@dataclass(frozen=True)
class Kernel:
    """A registered kernel and what the planner needs to know of it."""

    domain: str
    op_type: str
    since: int
    until: int
    """The kernel serves schema versions `since <= v < until`."""
    function: Callable[..., Any]
    grade: Grade
    is_maker: bool
    inplace: tuple[int, ...]
    """Input positions whose buffer may be `out` when shape and dtype agree."""
    view: bool
    """The result may alias input 0: no copy is made and none is needed."""
    attributes: frozenset[str] = field(repr=False)
    """Names of the ONNX attributes it takes."""
    reserved: frozenset[str] = field(repr=False)
    """Which of RESERVED it takes."""
    any_order: bool = False
    """Inputs and `out` may have their channels innermost in memory, and the bits are the same."""
    in_single: Callable[..., Any] | None = None
    """The function on float32 whose result, rounded once, is that of `function` on float16."""

    @property
    def where(self) -> str:
        """Module and function, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


_TABLE: dict[tuple[str, str], list[Kernel]] = {}


def kernel(
    *op_types: str,
    since: int = 1,
    until: int = LATEST,
    domain: str = "",
    grade: Grade = "reference",
    inplace: Sequence[int] = (),
    view: bool = False,
    exact: bool = False,
    any_order: bool = False,
) -> Callable[[Function], Function]:
    """Register a plain function for operators at schema versions `since <= v < until`.

    The table tells an operator's versions apart only where their kernels differ: `since` is a
    bound on the version the node resolves to, not one version. `exact`: it is order-defined, so
    that it serves exact mode as well.
    """
    grades: tuple[Grade, ...] = (grade, "exact") if exact else (grade,)
    traits = (False, tuple(inplace), view, any_order)
    return _registrar(op_types, since, until, domain, grades, *traits)


def maker(
    *op_types: str,
    since: int = 1,
    until: int = LATEST,
    domain: str = "",
    grade: Grade = "fast",
    inplace: Sequence[int] = (),
    view: bool = False,
    exact: bool = False,
    any_order: bool = False,
) -> Callable[[Function], Function]:
    """Register a maker: it is given `Operand`s and returns the closure or `Step` to run."""
    grades: tuple[Grade, ...] = (grade, "exact") if exact else (grade,)
    traits = (True, tuple(inplace), view, any_order)
    return _registrar(op_types, since, until, domain, grades, *traits)


def computes_in_single(function: Function, single: Callable[..., Any] | None = None) -> Function:
    """Decorator: for float16 it gives what `single` gives for float32, by default itself, rounded.

    One that does more than an operator is another function on float32: it rounds in between.
    """
    cast(Any, function).in_single = single or function
    return function


def find_kernel(
    domain: str,
    op_type: str,
    version: int,
    grades: Sequence[Grade] = GRADES["fast"],
) -> Kernel | None:
    """The kernel of the first grade that serves `version`, or None."""
    candidates = _TABLE.get((domain, op_type), ())
    for grade in grades:
        for entry in candidates:
            if entry.grade == grade and entry.since <= version < entry.until:
                return entry
    return None


def all_kernels() -> list[Kernel]:
    """Every registered kernel, ordered by domain and operator."""
    return [entry for key in sorted(_TABLE) for entry in _TABLE[key]]


def compute(entry: Kernel, inputs: Sequence[Array | None], **keywords: Any) -> Any:
    """Run a kernel of either kind once on arrays; makers see shapes and dtypes, no values."""
    if not entry.is_maker:
        return entry.function(*inputs, **keywords)
    destination = {"out": keywords.pop("out")} if "out" in keywords else {}
    operands = [None if x is None else Operand(x.shape, x.dtype) for x in inputs]
    return run_once(entry.function(*operands, **keywords), inputs, **destination)


def run_once(
    made: Callable[..., Any] | Step, inputs: Sequence[Array | None], **keywords: Any
) -> Any:
    """Run what a maker made, in memory of its own."""
    step = made if isinstance(made, Step) else Step(made)
    if step.scratch_bytes:
        keywords["scratch"] = aligned_bytes(step.scratch_bytes)
    return step.run(*inputs, **keywords)


def aligned_bytes(size: int, alignment: int = 64) -> npt.NDArray[np.uint8]:
    """An uninitialised uint8 vector of `size` bytes whose address is a multiple of `alignment`."""
    block = np.empty(size + alignment, np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size]


def _registrar(
    op_types: tuple[str, ...],
    since: int,
    until: int,
    domain: str,
    grades: tuple[Grade, ...],
    is_maker: bool,
    inplace: tuple[int, ...],
    view: bool,
    any_order: bool,
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        keywords = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        for op_type, grade in product(op_types, grades):
            entry = Kernel(
                domain,
                op_type,
                since,
                until,
                function,
                grade,
                is_maker,
                inplace,
                view,
                frozenset(keywords.difference(RESERVED)),
                frozenset(keywords.intersection(RESERVED)),
                any_order,
                getattr(function, "in_single", None),
            )
            _refuse_overlap(entry)
            _TABLE.setdefault((domain, op_type), []).append(entry)
        return function

    return register


def _refuse_overlap(new: Kernel) -> None:
    for old in _TABLE.get((new.domain, new.op_type), ()):
        if old.grade == new.grade and old.since < new.until and new.since < old.until:
            name = f"{new.domain}::{new.op_type}" if new.domain else new.op_type
            raise ValueError(
                f"{name} {old.since}..{old.until - 1} already has the {old.grade} kernel "
                f"{old.where}; cannot also register {new.where}"
            )
