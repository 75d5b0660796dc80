"""What every elementwise kernel promises: dtype, shape, rank 0, intact inputs, `out`, aliases."""

import ml_dtypes
import numpy as np
import onnx.defs
import pytest

import foldline.kernels.activation
import foldline.kernels.arithmetic
import foldline.kernels.comparison
import foldline.kernels.error_function
import foldline.kernels.unary_math  # noqa: F401
from foldline.kernels.registry import Kernel, compute, find_kernel

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        "float": np.float32,
        "double": np.float64,
        "float16": np.float16,
        "bfloat16": BFLOAT16,
        "int8": np.int8,
        "int32": np.int32,
        "int64": np.int64,
        "uint8": np.uint8,
        "uint64": np.uint64,
        "bool": np.bool_,
    }.items()
}
OPERATORS = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
    Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid
    HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu
    Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum
    SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
""".split()


def attributes_of(schema: onnx.defs.OpSchema) -> dict[str, object]:
    """The defaults of the schema, and values for what has none."""
    values: dict[str, object] = {"direction": "LEFT"} if schema.name == "BitShift" else {}
    for attribute in schema.attributes.values():
        if attribute.default_value.name:
            value = onnx.helper.get_attribute_value(attribute.default_value)
            values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values


def cases() -> list[pytest.param]:
    """Every operator at every version with every element type of its first type parameter."""
    found = []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain or schema.name not in OPERATORS:
            continue
        data = schema.inputs[-1].type_str
        types = next(t for t in schema.type_constraints if t.type_param_str == data)
        for name in types.allowed_type_strs:
            if name in DTYPES:
                label = f"{schema.name}-{schema.since_version}-{name[7:-1]}"
                found.append(pytest.param(schema, DTYPES[name], id=label))
    return found


def inputs_of(schema: onnx.defs.OpSchema, dtype: np.dtype, shape: tuple[int, ...]) -> list:
    variadic = schema.max_input > 9
    count = 3 if variadic else schema.max_input
    if schema.name == "Clip":
        count = min(count, 3)
    values = np.arange(int(np.prod(shape))) % 5 + 1
    arrays = [np.array(values % (k + 3)).reshape(shape).astype(dtype) for k in range(count)]
    if schema.name == "Where":
        arrays[0] = arrays[0].astype(bool)
    if schema.name == "Pow":
        arrays[0] = arrays[0].astype(base_dtype(schema, dtype))
    if schema.name == "Clip" and count == 3:
        arrays[1:] = np.array(1, dtype), np.array(2, dtype)
    return arrays


def base_dtype(schema: onnx.defs.OpSchema, exponent: np.dtype) -> np.dtype:
    """Pow has a base of its own type: one the exponent does not have, where that is allowed."""
    if schema.since_version < 12:
        return exponent
    return np.dtype(np.float32) if exponent.kind in "iu" else np.dtype(np.int32)


def run(entry: Kernel, inputs: list, **keywords: object) -> np.ndarray:
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **keywords)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize(("schema", "dtype"), cases())
def test_contract(schema: onnx.defs.OpSchema, dtype: np.dtype):
    entry = find_kernel("", schema.name, schema.since_version)
    assert entry is not None
    attributes = attributes_of(schema)
    for shape in ((), (0, 3), (2, 3)):
        inputs = inputs_of(schema, dtype, shape)
        before = [x.copy() for x in inputs]
        result = run(entry, inputs, **attributes)

        assert type(result) is np.ndarray
        assert result.shape == shape
        is_boolean = schema.outputs[0].type_str != schema.inputs[-1].type_str
        expected = np.bool_ if is_boolean and schema.name != "Pow" else inputs[0].dtype
        assert result.dtype == (inputs[-1].dtype if schema.name == "Where" else expected)
        assert all(map(same_bits, inputs, before))
        assert not any(np.may_share_memory(result, x) for x in inputs)

        out = np.empty(shape, result.dtype)
        assert run(entry, inputs, **attributes, out=out) is out
        assert same_bits(out, result)

        for position in entry.inplace:
            if position >= len(inputs):
                continue
            aliased = [x.copy() for x in inputs]
            out = aliased[position]
            if out.shape == result.shape and out.dtype == result.dtype:
                assert run(entry, aliased, **attributes, out=out) is out
                assert same_bits(out, result), f"aliasing input {position}"


@pytest.mark.parametrize("op_type", ["Sum", "Max"])
def test_a_value_given_twice_survives_in_place(op_type):
    x = np.array([1, -2], np.float32)
    y = np.array([3, 4], np.float32)
    entry = find_kernel("", op_type, 13)
    expected = run(entry, [x, y, x])
    assert run(entry, [x, y, x], out=x).tolist() == expected.tolist()
