"""Types of ONNX Runtime's operators where sizes have names or are not known.

That types are right where sizes are known is tested with the kernels.
"""

from __future__ import annotations

import pytest
from onnx import parser

import foldline
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.dialects.onnx.types import dims_of, element_of, element_type

HEAD = '<ir_version: 8, opset_import: ["" : 16, "com.microsoft" : 1, "local" : 1]>'


def inferred(inputs: str, node: str, functions: str = "") -> list[tuple[str, object]]:
    """Element type and dims of what the node, which calls its results `y` and so on, gives."""
    names = [name.strip() for name in node.partition("=")[0].split(",")]
    outputs = ", ".join(f"float {name}" for name in names if name)
    model = parser.parse_model(f"{HEAD} g ({inputs}) => ({outputs}) {{ {node} }} {functions}")
    for output in model.graph.output:
        output.ClearField("type")
    compiled = foldline.compile(model, options={"oo.level": "O1"})
    values = terminator(main_graph(compiled.module).body.block).operands
    types = [value.type for value in values]
    elements = [element_type(each) for each in types]
    assert all(element is not None for element in elements)
    return [
        (element_of(element).name, dims_of(each))  # pyright: ignore[reportOptionalMemberAccess, reportArgumentType]
        for element, each in zip(elements, types, strict=True)
    ]


@pytest.mark.parametrize(
    ("inputs", "node", "expected"),
    [
        (
            "float[N,3,8,W] x, float[4,3,3,3] w",
            'y = com.microsoft.FusedConv <strides = [2, 2], activation = "Relu"> (x, w)',
            [("float", ("N", 4, 3, None))],
        ),
        (
            "float[A,B,4] x, float[B,4,5] w",
            "y = com.microsoft.FusedMatMul <transBatchA = 1> (x, w)",
            [("float", ("B", "A", 5))],
        ),
        (
            "uint8[N,4] x, uint8[4,5] w, float s",
            "y = com.microsoft.MatMulIntegerToFloat(x, w, s, s)",
            [("float", ("N", 5))],
        ),
        (
            "uint8[N,8,8,3] x",
            "y = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)",
            [("uint8", ("N", 4, 4, 3))],
        ),
        (
            "uint8[N,8,W,3] x, float s, uint8 z, int8[4,3,3,3] w, int8 wz, int8 yz",
            "y = com.microsoft.QLinearConv <channels_last = 1, strides = [2, 2]>"
            " (x, s, z, w, s, wz, s, yz)",
            [("int8", ("N", 3, None, 4))],
        ),
        (
            "float16[N,S,8] x, float16[8] s",
            "y, mean, inverse, z = com.microsoft.SkipLayerNormalization(x, x, s)",
            [
                ("float16", ("N", "S", 8)),
                *[("float", ("N", "S", 1))] * 2,
                ("float16", ("N", "S", 8)),
            ],
        ),
        (
            "float[T,N,8] x, uint8[2,8,16] w, uint8[2,4,16] r, float[2] s, uint8[2] z",
            "y, h = com.microsoft.DynamicQuantizeLSTM"
            ' <hidden_size = 4, direction = "bidirectional"> (x, w, r, , , , , , s, z, s, z)',
            [("float", ("T", 2, "N", 4)), ("float", (2, "N", 4))],
        ),
        (
            "float[N,S,8] x, float[8,24] w, float[24] b",
            "y, p = com.microsoft.Attention <num_heads = 2> (x, w, b)",
            [("float", ("N", "S", 8)), ("float", (2, "N", 2, "S", 4))],
        ),
        (
            "float[N,3,8] q, float[N,L,8] k, float[N,2,P,4] past",
            "y, k2, v2 = com.microsoft.MultiHeadAttention <num_heads = 2>"
            " (q, k, k, , , , past, past)",
            [("float", ("N", 3, 8)), *[("float", ("N", 2, None, 4))] * 2],
        ),
        (
            "float[N,1,8] q, float[N,2,16,4] buffer, int32[1] n",
            "y, k2, v2 = com.microsoft.MultiHeadAttention <num_heads = 2>"
            " (q, q, q, , , , buffer, buffer, n)",
            [("float", ("N", 1, 8)), *[("float", ("N", 2, 16, 4))] * 2],
        ),
        (
            "float[N,1,8] q, float[N,2,P,4] past, int32[N] n, int32 t",
            "y, k2, v2 = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2>"
            " (q, q, q, past, past, n, t)",
            [("float", ("N", 1, 8)), *[("float", ("N", 2, None, 4))] * 2],
        ),
        (
            "float[N,8] x, float[8] s",
            "y = LayerNormalization <axis = -1> (x, s)",
            [("float", ("N", 8))],
        ),
    ],
)
def test_sizes_keep_their_names(inputs: str, node: str, expected: list[tuple[str, object]]) -> None:
    assert inferred(inputs, node) == expected


def test_attributes_that_a_caller_gives_are_not_guessed() -> None:
    functions = """<domain: "local", opset_import: ["com.microsoft" : 1]>
        turned <flag> (x) => (y) { y = com.microsoft.FusedMatMul <transA: int = @flag> (x, x) }"""
    given = "float[3,4] x"
    ((element, dims),) = inferred(given, "y = local.turned <flag = 1> (x)", functions)
    assert element == "float"
    assert dims in (None, (4, 4))
