"""remove-casts: which casts lose nothing, proved on every value of the narrow types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.kernels.cast import convert
from foldline.stages.context import PassContext
from foldline.stages.passes.cleanup.remove_casts import RemoveCasts, _converts_alike, _holds
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.dtypes import BY_NAME, ELEMENT_TYPES, ElementType
from tests.stages.check import (
    Array,
    check_unchanged,
    check_values,
    from_onnx,
    nodes,
    op_types,
    run_pass,
)

PASS = RemoveCasts()


def chain(source: str, *targets: str, opset: int = 21) -> ModuleOp:
    """Casts of x one after the other, each of them seen by InferShapes; a Neg reads the last."""
    codes = [BY_NAME[name.lower()].code for name in targets]
    casts = [f"v{i + 1} = Cast <to = {code}> (v{i})" for i, code in enumerate(codes)]
    text = f"{' '.join(casts)} y = Identity(v{len(codes)})"
    text = f"g ({source}[N] v0) => ({targets[-1]}[N] y) {{ {text} }}"
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def test_a_cast_to_the_type_that_is_there() -> None:
    module = chain("float", "float")
    run_pass(PASS, module)
    assert op_types(module) == ["Identity"]


@pytest.mark.parametrize(
    ("source", "middle"),
    [
        ("int32", "int64"),
        ("float16", "float"),
        ("float", "double"),
        ("int8", "float"),
        ("bool", "int32"),
    ],
)
def test_widening_and_back(source: str, middle: str) -> None:
    module = chain(source, middle, source)
    run_pass(PASS, module)
    assert op_types(module) == ["Cast", "Identity"] or op_types(module) == ["Identity"]
    assert nodes(module)[-1].operands[0] is module_input(module)


def module_input(module: ModuleOp) -> object:
    return nodes(module)[0].parent.args[0]  # pyright: ignore[reportOptionalMemberAccess]


def test_one_cast_where_the_middle_holds_all() -> None:
    module = chain("int32", "int64", "float")
    run_pass(PASS, module)
    assert op_types(module) == ["Cast", "Identity"]
    check_values(PASS, chain("int32", "int64", "float"), {"v0": np.int32([1 << 30, -7, 16777217])})


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (("int64", "float", "int64"), "int64 -> float -> int64 may lose values"),
        (("float", "float16", "float"), "may lose values"),
        (("int64", "int32", "int64"), "may lose values"),
        (("bfloat16", "float", "bfloat16"), "may lose values"),
        (("float16", "float", "int32"), "what does not fit may be converted otherwise"),
        (("int16", "float", "int8"), "what does not fit may be converted otherwise"),
        (("int32", "double", "float16"), "what does not fit may be converted otherwise"),
    ],
)
def test_others_stay(targets: tuple[str, ...], reason: str) -> None:
    check_unchanged(PASS, chain(*targets), reason)


SHAPE = """g (float[N, 3] x) => (int64[2] y) {{
    s = Shape(x) a = Cast <to = {code}> (s) b = Cast <to = 7> (a) y = Add(b, b)
}}"""


@pytest.mark.parametrize(
    ("code", "kept"), [(6, ["Shape", "Add"]), (3, ["Shape", "Cast", "Cast", "Add"])]
)
def test_sizes_fit_int32_and_not_int8(code: int, kept: list[str]) -> None:
    module = from_onnx(SHAPE.format(code=code))
    InferShapes().run(PassContext(module))
    run_pass(PASS, module)
    assert op_types(module) == kept


@pytest.mark.parametrize(("value", "fits"), [(2**31 - 1, True), (-(2**31), True), (2**31, False)])
def test_known_numbers_fit_or_do_not(value: int, fits: bool) -> None:
    module = from_onnx(
        f"""g (int64[1] x) => (int64[1] y) <int64[1] c = {{{value}}}> {{
        a = Cast <to = 6> (c) b = Cast <to = 7> (a) y = Add(b, x) }}"""
    )
    InferShapes().run(PassContext(module))
    run_pass(PASS, module)
    assert op_types(module) == (["Add"] if fits else ["Cast", "Cast", "Add"])


def test_an_output_keeps_its_name() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) {
        a = Neg(x) b = Cast <to = 11> (a) y = Cast <to = 1> (b) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": np.float32([np.nan, -0.0])})
    assert [result_names(op) for op in nodes(module)] == [("y",)]


def test_an_output_that_is_an_input_stays() -> None:
    module = from_onnx(
        "g (float[2] x) => (float[2] y) { b = Cast <to = 11> (x) y = Cast <to = 1> (b) }"
    )
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, "its input is an input of the same graph")


def test_a_cast_with_other_readers_stays_for_them() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y, double[2] z) {
        b = Cast <to = 11> (x) c = Cast <to = 1> (b) y = Neg(c) z = Neg(b) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": np.float32([np.inf, 1e-45])})
    assert op_types(module) == ["Cast", "Neg", "Neg"]


def every_value(row: ElementType) -> Array:
    """Every value of a narrow type, and many of a wide one, but for signalling NaNs."""
    size, unsigned = row.numpy.itemsize, f"u{row.numpy.itemsize}"
    if row.numpy == np.bool_:
        return np.array([False, True])
    if size <= 2:
        bits = np.arange(1 << (8 * size)).astype(unsigned)
    else:
        edges = np.array([-0.0, 0, 1, 2**24 + 1, 2**31 - 1], np.float64).astype(row.numpy)
        noise = np.random.default_rng(0).integers(0, 256, 1 << 16, np.uint8)
        bits = np.concatenate([edges.view(unsigned), noise.view(unsigned)])
    values = bits.view(row.numpy)
    if row.numpy.kind == "f":
        quiet = np.array(1 << (np.finfo(row.numpy).nmant - 1), unsigned)
        values = np.where(np.isnan(values), bits | quiet, bits).view(row.numpy)
    return values


NUMBERS = [row for row in ELEMENT_TYPES if row.numpy.kind in "biuf" and row.numpy.isbuiltin == 1]


@pytest.mark.parametrize("source", NUMBERS, ids=lambda row: row.name)
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_to_hold_holds(source: ElementType) -> None:
    values = every_value(source)
    for middle in NUMBERS:
        if not _holds(middle, source):
            continue
        wide = convert(values, middle.numpy)
        np.testing.assert_array_equal(convert(wide, source.numpy).view("u1"), values.view("u1"))
        for target in NUMBERS:
            if _converts_alike(source, middle, target):
                direct, through = convert(values, target.numpy), convert(wide, target.numpy)
                np.testing.assert_array_equal(direct.view("u1"), through.view("u1"))


@pytest.mark.filterwarnings("ignore")
def test_the_narrow_types_hold_nothing() -> None:
    assert not _holds(BY_NAME["float"], BY_NAME["bfloat16"])
    assert not _holds(BY_NAME["int8"], BY_NAME["int4"])
    nan = np.array([0x7F81], np.uint16).view(ml_dtypes.bfloat16)
    assert nan.astype(np.float32).astype(ml_dtypes.bfloat16).tobytes() != nan.tobytes()
