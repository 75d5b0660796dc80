from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f16, f32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from foldline.dialects.onnx.attributes import (
    Interface,
    InterfaceAttr,
    Names,
    OpsetsAttr,
    Reference,
    ReferenceAttr,
    ValueInfo,
)
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import ConstantOp, constant_tensor
from foldline.dialects.onnx.indexing import Ranges, SliceOp, TopKOp
from foldline.dialects.onnx.math import Bounds, CastOp, ClipOp
from foldline.dialects.onnx.op import OnnxOp, node_name
from foldline.dialects.onnx.parameters import Given
from foldline.dialects.onnx.plain import attribute_of
from foldline.dialects.onnx.reduction import ReduceMeanOp, ReduceOp, ReduceSumOp
from foldline.dialects.onnx.resizing import PadOp, Pads, ResizeOp, UpsampleOp
from foldline.dialects.onnx.shape import (
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    Target,
    TileOp,
    UnsqueezeOp,
)
from foldline.dialects.onnx.structure import GraphOp, NoneOp, ReturnOp
from foldline.dialects.onnx.types import UNKNOWN, tensor_type
from foldline.dialects.onnx.verifier import verify_model
from foldline.support.dtypes import BY_NAME
from foldline.support.errors import RewriteError

DATA = tensor_type(f32, (2, 6))


class Place:
    """A graph with inputs that a builder's operations are put into."""

    def __init__(self, opset: int, *types: Attribute):
        self.block = Block(arg_types=types or [DATA])
        infos = tuple(ValueInfo(f"x{i}") for i in range(len(self.block.args)))
        end = ReturnOp.create(properties={"interface": InterfaceAttr(Interface("g", infos))})
        self.block.add_op(end)
        self.end = end
        self.graph = GraphOp.create(
            properties={"opsets": OpsetsAttr((("", opset),))}, regions=[Region(self.block)]
        )
        self.module = ModuleOp([self.graph])
        self.builder = Builder.at(end)

    def put(self, ops: list[Operation]) -> OnnxOp:
        """Insert, verify, and give the operator."""
        self.block.insert_ops_before(ops, self.end)
        verify_model(self.module)
        last = ops[-1]
        assert isinstance(last, OnnxOp)
        return last


Build = Callable[[Builder, SSAValue], list[Operation]]
Read = Callable[[Any], Any]

CASES: list[tuple[str, Build, Read, Any, dict[int, tuple[str, ...]]]] = [
    (
        "squeeze",
        lambda b, x: b.squeeze(x, (0, -1)),
        SqueezeOp.axes_known,
        Given((0, -1)),
        {1: ("axes",), 11: ("axes",), 13: (), 21: ()},
    ),
    (
        "squeeze all",
        lambda b, x: b.squeeze(x, None),
        SqueezeOp.axes_known,
        Given(None),
        {1: (), 11: (), 13: (), 21: ()},
    ),
    (
        "unsqueeze",
        lambda b, x: b.unsqueeze(x, [0]),
        UnsqueezeOp.axes_known,
        Given((0,)),
        {1: ("axes",), 11: ("axes",), 13: (), 21: ()},
    ),
    (
        "reduce sum",
        lambda b, x: b.reduce(ReduceSumOp, x, (1,), keepdims=False),
        lambda op: (op.axes_known(), op.keepdims),
        (Given((1,)), False),
        {1: ("axes", "keepdims"), 11: ("axes", "keepdims"), 13: ("keepdims",)},
    ),
    (
        "reduce mean",
        lambda b, x: b.reduce(ReduceMeanOp, x, (1,)),
        lambda op: (op.axes_known(), op.keepdims),
        (Given((1,)), True),
        {11: ("axes", "keepdims"), 13: ("axes", "keepdims"), 18: ("keepdims",)},
    ),
    (
        "split",
        lambda b, x: b.split(x, (2, 4), axis=1),
        SplitOp.sizes,
        (2, 4),
        {1: ("axis", "split"), 2: ("axis", "split"), 13: ("axis",), 18: ("axis",)},
    ),
    (
        "clip",
        lambda b, x: b.clip(x, 0, 6),
        ClipOp.bounds,
        Bounds(0.0, 6.0),
        {1: ("max", "min"), 6: ("max", "min"), 11: (), 13: ()},
    ),
    (
        "clip above",
        lambda b, x: b.clip(x, maximum=6),
        ClipOp.bounds,
        Bounds(None, 6.0),
        {1: ("max",), 11: (), 13: ()},
    ),
    (
        "pad",
        lambda b, x: b.pad(x, (0, 1, 0, 2), fill=1.5),
        lambda op: (op.pads_known(), op.fill_known()),
        (Pads((0, 1), (0, 2), (0, 1)), Given(1.5)),
        {1: ("paddings", "value"), 2: ("pads", "value"), 11: (), 18: (), 21: ()},
    ),
    (
        "slice",
        lambda b, x: b.slice(x, (0,), (2,), (1,), (1,)),
        SliceOp.ranges,
        Ranges((0,), (2,), (1,), (1,)),
        {1: ("axes", "ends", "starts"), 10: (), 13: ()},
    ),
    (
        "slice without axes",
        lambda b, x: b.slice(x, (0, 1), (2, 3)),
        SliceOp.ranges,
        Ranges((0, 1), (2, 3), (0, 1), (1, 1)),
        {1: ("ends", "starts"), 10: (), 13: ()},
    ),
    (
        "slice with steps",
        lambda b, x: b.slice(x, (5,), (0,), steps=(-1,)),
        SliceOp.ranges,
        Ranges((5,), (0,), (0,), (-1,)),
        {10: (), 13: ()},
    ),
    (
        "reshape",
        lambda b, x: b.reshape(x, (0, -1)),
        ReshapeOp.target,
        Target((0, -1), False),
        {1: ("shape",), 9: (), 14: ()},
    ),
    (
        "reshape with zeros",
        lambda b, x: b.reshape(x, (0, 6), allow_zero=True),
        ReshapeOp.target,
        Target((0, 6), True),
        {14: ("allowzero",), 21: ("allowzero",)},
    ),
    (
        "tile",
        lambda b, x: b.tile(x, (1, 3)),
        TileOp.repeats_known,
        (1, 3),
        {9: (), 13: ()},
    ),
    (
        "top k",
        lambda b, x: b.top_k(x, 3, axis=1),
        TopKOp.k_known,
        3,
        {1: ("axis", "k"), 10: ("axis",), 11: ("axis",)},
    ),
    (
        "cast",
        lambda b, x: b.cast(x, BY_NAME["int64"]),
        lambda op: op.value_of("to"),
        7,
        {6: ("to",), 9: ("to",), 19: ("to",)},
    ),
    (
        "transpose",
        lambda b, x: b.transpose(x, (1, 0)),
        lambda op: op.permutation(),
        (1, 0),
        {1: ("perm",), 13: ("perm",)},
    ),
    (
        "concat",
        lambda b, x: b.concat([x, x], 1),
        lambda op: op.int_of("axis"),
        1,
        {1: ("axis",), 4: ("axis",), 13: ("axis",)},
    ),
    (
        "expand",
        lambda b, x: b.expand(x, (3, 2, 6)),
        lambda op: op.target(),
        (3, 2, 6),
        {9: (), 13: ()},
    ),
]


@pytest.mark.parametrize(
    ("build", "read", "expected", "opset", "attributes"),
    [
        pytest.param(build, read, expected, opset, attributes, id=f"{name}-{opset}")
        for name, build, read, expected, forms in CASES
        for opset, attributes in forms.items()
    ],
)
def test_what_is_built_is_read_back(
    build: Build, read: Read, expected: Any, opset: int, attributes: tuple[str, ...]
) -> None:
    place = Place(opset)
    op = place.put(build(place.builder, place.block.args[0]))
    assert read(op) == expected
    assert tuple(sorted(op.properties)) == attributes


def test_constants_take_the_type_of_the_data() -> None:
    place = Place(13, tensor_type(f16, (2,)))
    op = place.put(place.builder.clip(place.block.args[0], 0, 6))
    assert isinstance(op, ClipOp)
    assert op.minimum is not None
    tensor = constant_tensor(op.minimum)
    assert tensor is not None
    assert tensor.array.dtype == np.float16
    assert tensor.array.shape == ()


def test_the_number_of_top_k_is_a_vector() -> None:
    place = Place(11)
    op = place.put(place.builder.top_k(place.block.args[0], 3))
    assert isinstance(op, TopKOp)
    assert op.K is not None
    tensor = constant_tensor(op.K)
    assert tensor is not None
    assert tensor.array.tolist() == [3]


def test_absent_inputs_in_the_middle_are_none() -> None:
    place = Place(13)
    ops = place.builder.clip(place.block.args[0], maximum=6)
    assert [type(op) for op in ops] == [NoneOp, ConstantOp, ClipOp]
    assert place.put(ops).operand(1) is None


def test_values_that_the_model_computes_stay_inputs() -> None:
    place = Place(13, DATA, tensor_type(i64, (1,)))
    data, axes = place.block.args
    op = place.put(place.builder.unsqueeze(data, axes))
    assert isinstance(op, UnsqueezeOp)
    assert op.axes is axes
    assert op.axes_known() is None
    with pytest.raises(RewriteError, match="Unsqueeze of version 11 wants a constant axes"):
        Builder({"": 12}).unsqueeze(data, axes)


def test_a_constant_input_becomes_an_attribute_of_old_versions() -> None:
    place = Place(11)
    (axes,) = place.builder.constant(np.array([1]))
    place.put([axes, *place.builder.squeeze(place.block.args[0], axes.results[0])])
    squeeze = place.end.prev_op
    assert isinstance(squeeze, SqueezeOp)
    assert squeeze.ints_of("axes") == (1,)


@pytest.mark.parametrize(
    ("opset", "build", "message"),
    [
        (9, lambda b, x: b.slice(x, (0,), (4,), steps=(2,)), "Slice of version 1 has no steps"),
        (13, lambda b, x: b.reshape(x, (0,), allow_zero=True), "Reshape .* has no allowzero"),
        (7, lambda b, x: b.expand(x, (1,)), r"Expand is not in operator set ai\.onnx 7"),
        (8, lambda b, x: b.reshape(x, (1,)), "Constant of operator set 8 cannot hold int64"),
        (10, lambda b, x: b.top_k(x, 1, largest=False), "TopK of version 10 has no largest"),
        (13, lambda b, x: b.cast(x, BY_NAME["float"], saturate=False), "Cast .* has no saturate"),
        (13, lambda b, x: b.operator(UpsampleOp, [x], {"scales": (1, 2)}), "Upsample is not in"),
        (13, lambda b, x: b.operator(ReshapeOp, [x], {}), "Reshape .* takes 2 inputs, got 1"),
    ],
)
def test_what_a_version_cannot_say_is_refused(opset: int, build: Build, message: str) -> None:
    with pytest.raises(RewriteError, match=message):
        build(Builder({"": opset}), Place(opset).block.args[0])


def test_an_unknown_type_makes_no_limits() -> None:
    place = Place(13, UNKNOWN)
    with pytest.raises(RewriteError, match="the type of min is not known yet"):
        place.builder.clip(place.block.args[0], 0)
    for limit in (np.array(0, np.float16), np.float16(0)):
        made = place.builder.clip(place.block.args[0], limit)[0]
        assert isinstance(made, ConstantOp)
        tensor = made.tensor()
        assert tensor is not None
        assert tensor.array.dtype == np.float16


def test_a_domain_that_is_not_imported_is_refused() -> None:
    with pytest.raises(RewriteError, match=r"Clip is not in operator set ai\.onnx None"):
        Builder({}).clip(Place(13).block.args[0], 0)


def test_the_first_casts_name_their_type() -> None:
    (cast,) = Builder({"": 1}).cast(Place(1).block.args[0], BY_NAME["float16"])
    assert isinstance(cast, CastOp)
    assert cast.properties["to"] == attribute_of(3, "FLOAT16")


def test_names_are_passed_on() -> None:
    place = Place(17)
    op = place.builder.identity(place.block.args[0], Names("n", ("y",)))[-1]
    assert node_name(op) == "n"
    assert op.results[0].type == DATA


@pytest.mark.parametrize(
    ("opset", "count", "expected"),
    [(17, 3, (2, 2, 2)), (17, 4, None), (18, 4, (2, 2, 2, 0)), (18, 5, None)],
)
def test_equal_parts_of_a_known_dimension(
    opset: int, count: int, expected: tuple[int, ...] | None
) -> None:
    place = Place(opset)
    op = SplitOp.create(
        operands=[place.block.args[0]],
        result_types=[UNKNOWN] * count,
        properties={"axis": attribute_of(2, 1)},
    )
    place.block.insert_op_before(op, place.end)
    assert op.sizes() == expected


def test_parts_of_an_unknown_dimension_are_unknown() -> None:
    place = Place(13, tensor_type(f32, ("N",)))
    op = SplitOp.create(operands=[place.block.args[0]], result_types=[UNKNOWN] * 2)
    place.block.insert_op_before(op, place.end)
    assert op.sizes() is None


def test_references_are_not_known() -> None:
    place = Place(11)
    reference = ReferenceAttr(Reference("axes", 7))
    op = SqueezeOp.create(
        operands=[place.block.args[0]], result_types=[UNKNOWN], properties={"axes": reference}
    )
    place.block.insert_op_before(op, place.end)
    assert op.axes_known() is None


def test_the_default_limits_of_opset_6_count() -> None:
    place = Place(6)
    op = ClipOp.create(operands=[place.block.args[0]], result_types=[UNKNOWN])
    place.block.insert_op_before(op, place.end)
    assert op.bounds() == Bounds(-3.4028234663852886e38, 3.4028234663852886e38)


def test_the_first_tile_repeats_one_axis() -> None:
    place = Place(1)
    b = place.builder
    tiles, axis = b.constant(np.array(3.0, np.float32)), b.constant(np.array(1.0, np.float32))
    op = TileOp.create(
        operands=[place.block.args[0], tiles[0].results[0], axis[0].results[0]],
        result_types=[UNKNOWN],
    )
    assert isinstance(place.put([*tiles, *axis, op]), TileOp)
    assert op.repeats_known() == (1, 3)


@pytest.mark.parametrize("opset", [10, 11, 13, 19])
def test_scales_of_a_resize(opset: int) -> None:
    place = Place(opset)
    data = place.block.args[0]
    scales = place.builder.constant(np.array([1, 2], np.float32))
    roi = place.builder.constant(np.array([], np.float32))
    operands = [data, scales[0].results[0]]
    if opset > 10:
        operands.insert(1, roi[0].results[0])
    op = ResizeOp.create(operands=operands, result_types=[UNKNOWN])
    place.put([*scales, *roi, op])
    assert op.scales is scales[0].results[0]
    assert op.scales_known() == Given((1.0, 2.0))
    assert op.sizes_known() == Given(None)
    assert (op.roi is None) == (opset == 10)


def test_empty_scales_are_left_out() -> None:
    place = Place(11)
    b = place.builder
    empty, sizes = b.constant(np.array([], np.float32)), b.constant(np.array([2, 12]))
    none = empty[0].results[0]
    op = ResizeOp.create(
        operands=[place.block.args[0], none, none, sizes[0].results[0]], result_types=[UNKNOWN]
    )
    place.put([*empty, *sizes, op])
    assert op.scales_known() == Given(None)
    assert op.sizes_known() == Given((2, 12))


@pytest.mark.parametrize(
    ("opset", "properties"),
    [
        (1, {"height_scale": attribute_of(1, 2.0), "width_scale": attribute_of(1, 3.0)}),
        (7, {"scales": attribute_of(6, (1.0, 1.0, 2.0, 3.0))}),
    ],
)
def test_scales_of_an_upsample(opset: int, properties: dict[str, Attribute]) -> None:
    place = Place(opset)
    op = UpsampleOp.create(
        operands=[place.block.args[0]], result_types=[UNKNOWN], properties=properties
    )
    place.put([op])
    assert op.scales_known() == (1.0, 1.0, 2.0, 3.0)


def test_axes_of_a_pad() -> None:
    place = Place(18)
    op = place.put(
        place.builder.operator(PadOp, [place.block.args[0]], {"pads": (1, 2), "axes": (-1,)})
    )
    assert isinstance(op, PadOp)
    assert op.pads_known() == Pads((1,), (2,), (-1,))
    assert op.fill_known() == Given(None)


def test_no_reduction_without_axes() -> None:
    place = Place(18)
    parameters = {"noop_with_empty_axes": 1}
    op = place.put(place.builder.operator(ReduceMeanOp, [place.block.args[0]], parameters))
    assert isinstance(op, ReduceOp)
    assert op.noop_with_empty_axes
    assert op.keepdims
    with pytest.raises(RewriteError, match="no noop_with_empty_axes"):
        Builder({"": 13}).operator(ReduceMeanOp, [place.block.args[0]], parameters)
    same = Builder({"": 13}).operator(
        ReduceMeanOp, [place.block.args[0]], {"noop_with_empty_axes": 0}
    )
    assert same[-1].properties == {}
