"""The border of a Pad as the `pads` of the window that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp, OnnxOp, plain_value
from foldline.dialects.onnx.resizing import PadOp
from foldline.dialects.onnx.types import dims_of
from foldline.stages.rewrite.building import RuleBuilder


def joined_pads(pad: PadOp, reader: OnnxOp, kernel: Sequence[int]) -> tuple[int, ...] | str:
    """The `pads` that the reader has without the Pad, or why there are none."""
    if pad.value_of("mode") not in (None, "constant"):
        return f"the mode of the Pad is {pad.value_of('mode')}"
    given = pad.pads_known()
    if given is None:
        return "the sizes of the Pad are not constant"
    count = len(kernel)
    border = [0] * (2 * count)
    for before, after, axis in zip(given.before, given.after, given.axes, strict=True):
        if min(before, after) < 0:
            return "the Pad crops"
        place = axis % (count + 2) - 2
        if place >= 0:
            border[place], border[count + place] = before, after
        elif before or after:
            return "the Pad adds images or channels"
    own = _own_pads(pad.results[0], reader, kernel)
    return own if isinstance(own, str) else tuple(a + b for a, b in zip(border, own, strict=True))


def _own_pads(padded: SSAValue, reader: OnnxOp, kernel: Sequence[int]) -> tuple[int, ...] | str:
    """What a window pads itself, in numbers."""
    count = len(kernel)
    mode = reader.value_of("auto_pad")
    if mode == "VALID":
        return (0,) * (2 * count)
    if mode in (None, "", "NOTSET"):
        return reader.ints_of("pads") or (0,) * (2 * count)
    sizes = (dims_of(padded.type) or ())[2:]
    if len(sizes) != count or not all(isinstance(size, int) for size in sizes):
        return f"auto_pad is {mode} and the sizes are not known"
    strides = reader.ints_of("strides") or (1,) * count
    dilations = reader.ints_of("dilations") or (1,) * count
    before: list[int] = []
    after: list[int] = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        assert isinstance(size, int)
        reach = (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1
        total = max(reach - size, 0)
        less, more = total // 2, total - total // 2
        before.append(less if mode == "SAME_UPPER" else more)
        after.append(more if mode == "SAME_UPPER" else less)
    return (*before, *after)


def with_pads(
    build: RuleBuilder, op: NodeOp, inputs: Sequence[SSAValue | None], **changed: Any
) -> SSAValue:
    """The same window with other attributes, and no `auto_pad`."""
    kept = {k: plain_value(v) for k, v in op.onnx_attributes.items() if k != "auto_pad"}
    attributes: dict[str, Any] = {**kept, **changed}
    return build.op(op.op_type, *inputs, **attributes)
