"""rotary-embedding: one operator for pairs of elements that are turned by angles.

    a, b = Split(x);  Add(Mul(x, c), Mul(Concat(Neg(b), a), s))
        ->   fused RotaryEmbedding(x, c, s)

The halves may be Slices, or every other element with the turned pairs stacked again
(`interleaved`). Cosines and sines are any values that broadcast against x. Results are the same
to the bit, but for the sign of a NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.parameters import known_ints
from foldline.dialects.onnx.shape import UnsqueezeOp
from foldline.dialects.onnx.types import element_of, element_type, rank
from foldline.stages.passes.fusion.attention import REAL
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.tracing import traced
from foldline.stages.rewrite.transform import Transform
from foldline.stages.symbols.expression import Expr
from foldline.support.passes import PASSES


@traced
def _split(op: Any, x: Any, c: Any, s: Any) -> Any:
    first, second = op.Split(x, outputs=2, name="split")
    turned = op.Concat(op.Neg(second), first, name="join")
    return op.Add(op.Mul(x, c), op.Mul(turned, s))


@traced
def _sliced(op: Any, x: Any, c: Any, s: Any) -> Any:
    first, second = op.Slice(x, name="first"), op.Slice(x, name="second")
    turned = op.Concat(op.Neg(second), first, name="join")
    return op.Add(op.Mul(x, c), op.Mul(turned, s))


@traced
def _interleaved(op: Any, x: Any, c: Any, s: Any) -> Any:
    first, second = op.Slice(x, name="first"), op.Slice(x, name="second")
    pair = (op.Unsqueeze(op.Neg(second), name="left"), op.Unsqueeze(first, name="right"))
    turned = op.Reshape(op.Concat(*pair, name="join"), name="flat")
    return op.Add(op.Mul(x, c), op.Mul(turned, s))


def _is_rotary(match: Match) -> bool:
    x = match.value("x")
    axes, element = rank(x.type), element_type(x.type)
    dims = match.knowledge.dims(x)
    if axes is None or not axes or element is None or dims is None:
        return match.refuse("the rank or the type of what is turned is not known")
    if element_of(element) not in REAL:
        return match.refuse(f"elements of {element} are not turned")
    names = {node.name for node in match.pattern.nodes}
    is_interleaved = "flat" in names
    last = axes if is_interleaved else axes - 1
    if match.op("join").attribute_values()["axis"] not in (-1, last):
        return match.refuse("the turned parts are not joined along the last axis")
    problem = _split_problem(match, axes) if "split" in names else None
    if "split" not in names:
        problem = _slices_problem(match, axes, dims[-1], is_interleaved)
    if problem is None and is_interleaved:
        problem = _stack_problem(match, axes)
    if problem is not None:
        return match.refuse(problem)
    match.notes["interleaved"] = is_interleaved
    return True


def _split_problem(match: Match, axes: int) -> str | None:
    split = match.op("split")
    axis: Any = split.attribute_values()["axis"]
    if axis not in (-1, axes - 1):
        return f"the parts are split along axis {axis} of {axes}, not along the last"
    first, second = (match.knowledge.dims(result) for result in split.results)
    if len(split.results) != 2 or first is None or second is None or first[-1] != second[-1]:
        return "the parts are not known to be halves"
    return None


def _slices_problem(match: Match, axes: int, size: Expr, is_interleaved: bool) -> str | None:
    count = size.value
    if count is None or count % 2:
        return f"the last axis is of size {size}, not of an even number"
    wanted = [range(0, count, 2), range(1, count, 2)]
    if not is_interleaved:
        wanted = [range(count // 2), range(count // 2, count)]
    for name, expected in zip(("first", "second"), wanted, strict=True):
        op = match.op(name)
        found = _taken(op, axes, count) if isinstance(op, SliceOp) else None
        if found != expected:
            return f"a Slice takes {found} of {count} elements, not {expected}"
    return None


def _taken(op: SliceOp, axes: int, count: int) -> range | None:
    """The elements of the last axis that a Slice takes, and nothing else; None if not known."""
    starts, ends = known_ints(op, "starts", 1), known_ints(op, "ends", 2)
    along = known_ints(op, "axes", 3)
    steps = known_ints(op, "steps", 4) if op.operand(4) is not None else (1,)
    if starts is None or ends is None or steps is None or along not in ((-1,), (axes - 1,)):
        return None
    return range(count)[slice(starts[0], ends[0], steps[0])]


def _stack_problem(match: Match, axes: int) -> str | None:
    for name in ("left", "right"):
        op = match.op(name)
        given = op.axes_known() if isinstance(op, UnsqueezeOp) else None
        if given is None or given.value not in ((-1,), (axes,)):
            return "the turned elements are not stacked along a new last axis"
    flat, x = match.op("flat").results[0], match.value("x")
    if not match.knowledge.same_shape(flat, x):
        return "the turned pairs are not known to get the shape of what is turned"
    return None


def _fused(build: RuleBuilder, match: Match) -> SSAValue:
    x, c, s = (match.value(name) for name in ("x", "c", "s"))
    interleaved = 1 if match.notes["interleaved"] else None
    return build.fused("RotaryEmbedding", x, c, s, interleaved=interleaved)


TRANSFORM = built_in("rotary-embedding", [_split, _sliced, _interleaved], _fused, _is_rotary)


@dataclass(frozen=True)
class RotaryEmbedding(RulePass):
    """Make rotary embeddings single operators."""

    name = "rotary-embedding"
    INFO: ClassVar = PASSES["rotary-embedding"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
