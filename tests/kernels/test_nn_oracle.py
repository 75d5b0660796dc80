"""Convolution, pooling, normalisation and products against ONNX Runtime, unoptimised.

Every kernel that serves the operator's version is run, of either grade.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import foldline.kernels.batch_normalisation
import foldline.kernels.col2im
import foldline.kernels.conv
import foldline.kernels.deform_conv
import foldline.kernels.global_pooling
import foldline.kernels.linear_algebra
import foldline.kernels.local_response
import foldline.kernels.matmul
import foldline.kernels.normalisation
import foldline.kernels.pooling
import foldline.kernels.softmax  # noqa: F401
from foldline.kernels.registry import compute, find_kernel


def onnxruntime_results(op_type: str, opset: int, inputs: list, attributes: dict, outputs: int):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feed = {name: x for name, x in zip(names, inputs, strict=True) if name}
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
            )
            for name, x in feed.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feed)


def defaults(schema: onnx.defs.OpSchema) -> dict:
    values = {
        name: helper.get_attribute_value(a.default_value)
        for name, a in schema.attributes.items()
        if a.default_value.name
    }
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}


def check(op_type, inputs, attributes, opset=22, outputs=1, rtol=2e-5, atol=2e-5):
    schema = onnx.defs.get_schema(op_type, opset)
    expected = onnxruntime_results(op_type, opset, inputs, attributes, outputs)
    keywords = defaults(schema) | attributes
    kernels = [
        found
        for grade in ("fast", "reference")
        if (found := find_kernel("", op_type, schema.since_version, (grade,)))
    ]
    assert kernels
    for entry in kernels:
        extra = {"output_count": outputs} if "output_count" in entry.reserved else {}
        results = compute(entry, inputs, **keywords, **extra)
        results = results if isinstance(results, tuple) else (results,)
        for result, wanted in zip(results, expected, strict=False):
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol, err_msg=entry.where)


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 2), (4, 3)])
def test_conv_pads(auto_pad, strides, kernel):
    attributes = {"auto_pad": auto_pad, "strides": strides}
    check("Conv", [normal(2, 4, 9, 8), normal(6, 4, *kernel, seed=1), normal(6)], attributes)


@pytest.mark.parametrize(
    ("shape", "weights", "attributes"),
    [
        ((2, 4, 11), (6, 4, 3), {"pads": (2, 1), "dilations": (2,)}),
        ((1, 4, 5, 6, 7), (2, 2, 2, 3, 3), {"pads": (1, 0, 1, 0, 1, 1), "group": 2}),
        ((1, 6, 9, 9), (6, 1, 3, 3), {"pads": (1, 1, 1, 1), "group": 6}),
        ((1, 6, 9, 9), (12, 1, 3, 3), {"group": 6, "strides": (2, 2)}),
        ((1, 6, 9, 9), (6, 1, 3, 5), {"group": 6, "dilations": (2, 1), "pads": (0, 4, 3, 0)}),
        ((0, 3, 5, 5), (2, 3, 3, 3), {}),
    ],
)
def test_conv_shapes(shape, weights, attributes):
    check("Conv", [normal(*shape), normal(*weights, seed=1)], attributes)


@pytest.mark.parametrize(
    ("shape", "weights", "attributes"),
    [
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ((2, 4, 5, 6), (4, 3, 3, 2), {"strides": (2, 3), "output_padding": (1, 2)}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"dilations": (2, 1), "group": 2}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": (2, 2), "auto_pad": "SAME_UPPER"}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": (2, 2), "auto_pad": "SAME_LOWER"}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": (3, 3), "output_shape": (14, 17)}),
        ((1, 4, 5), (4, 3, 4), {"strides": (2,), "pads": (1, 2)}),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"strides": (2, 2, 2)}),
    ],
)
def test_conv_transpose(shape, weights, attributes):
    maps = weights[1] * attributes.get("group", 1)
    attributes = {**attributes, "kernel_shape": weights[2:]}
    check("ConvTranspose", [normal(*shape), normal(*weights, seed=1), normal(maps)], attributes, 11)


POOLS = [
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (2, 3), "strides": (1, 2), "auto_pad": "SAME_UPPER"},
    {"kernel_shape": (2, 2), "strides": (2, 1), "auto_pad": "SAME_LOWER"},
    {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1},
    {"kernel_shape": (3, 3), "strides": (3, 3), "pads": (0, 1, 2, 1), "ceil_mode": 1},
    {"kernel_shape": (3, 2), "strides": (2, 2), "auto_pad": "VALID", "ceil_mode": 1},
    {"kernel_shape": (1, 1), "strides": (2, 2)},
    {"kernel_shape": (8, 9)},
]


@pytest.mark.parametrize("attributes", POOLS)
def test_max_pool(attributes):
    dilated = {"dilations": (2, 2), "kernel_shape": (2, 2), "pads": (1, 0, 1, 1)}
    # ONNX Runtime forgets the dilation where auto_pad asks for the size of the input.
    for extra in ({}, dilated) if "auto_pad" not in attributes else ({},):
        for order in (0, 1):
            case = attributes | extra | {"storage_order": order}
            check("MaxPool", [normal(2, 3, 8, 9)], case, outputs=2, rtol=0)
    check("MaxPool", [normal(2, 3, 8, 9)], attributes, rtol=0)


def test_max_pool_of_integers_and_other_ranks():
    for dtype in (np.int8, np.uint8):
        x = np.random.default_rng(0).integers(np.iinfo(dtype).min, 127, (1, 2, 7, 7), dtype)
        check("MaxPool", [x], POOLS[0], opset=12)
    check("MaxPool", [normal(1, 2, 9)], {"kernel_shape": (3,), "strides": (2,)}, outputs=2)
    cube = {"kernel_shape": (2, 3, 2), "pads": (1, 1, 0, 0, 1, 1), "storage_order": 1}
    check("MaxPool", [normal(1, 2, 4, 5, 6)], cube, outputs=2)


@pytest.mark.parametrize("attributes", POOLS)
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("opset", [11, 22])
def test_average_pool(attributes, count_include_pad, opset):
    check(
        "AveragePool",
        [normal(2, 3, 8, 9)],
        attributes | {"count_include_pad": count_include_pad},
        opset,
    )


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("attributes", POOLS)
def test_lp_pool(attributes, p):
    check("LpPool", [normal(2, 3, 8, 9)], attributes | {"p": p}, opset=18)


def test_pools_over_everything():
    x = normal(2, 3, 5, 4)
    for op_type in ("GlobalAveragePool", "GlobalMaxPool"):
        check(op_type, [x], {})
    for p in (1, 2, 3):
        check("GlobalLpPool", [x], {"p": p}, opset=21)


def test_max_roi_pool():
    rois = np.float32([[0, 0, 0, 7, 7], [1, 2, 3, 5, 4], [0, 3, 3, 3, 3], [1, 9, 9, 20, 20]])
    for scale in (1.0, 0.5):
        attributes = {"pooled_shape": (3, 2), "spatial_scale": scale}
        check("MaxRoiPool", [normal(2, 3, 8, 8), rois], attributes, opset=21)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_softmax(op_type, opset, axis):
    check(op_type, [normal(3, 4, 5)], {} if axis is None else {"axis": axis}, opset)


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(opset):
    parameters = [normal(3), normal(3, seed=1), normal(3, seed=2), np.abs(normal(3, seed=3))]
    check("BatchNormalization", [normal(2, 3, 4, 5), *parameters], {"epsilon": 1e-3}, opset)
    check("BatchNormalization", [normal(7, 3), *parameters], {}, opset)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "outputs"),
    [
        ("LayerNormalization", [(2, 3, 4), (4,), (4,)], {}, 3),
        ("LayerNormalization", [(2, 3, 4), (3, 4), (3, 4)], {"axis": 1}, 3),
        ("LayerNormalization", [(2, 3, 4), (3, 4)], {"axis": -2, "epsilon": 0.1}, 1),
        ("InstanceNormalization", [(2, 3, 4, 5), (3,), (3,)], {"epsilon": 0.01}, 1),
        ("InstanceNormalization", [(2, 3, 7), (3,), (3,)], {}, 1),
        ("LpNormalization", [(3, 4)], {"p": 1}, 1),
        ("LpNormalization", [(3, 4, 2)], {"axis": 1}, 1),
        ("LRN", [(2, 7, 3, 4)], {"size": 3}, 1),
        ("LRN", [(2, 7, 3, 4)], {"size": 5, "alpha": 0.5, "beta": 0.6, "bias": 2.0}, 1),
        ("LRN", [(1, 2, 3, 4)], {"size": 9, "alpha": 1.0}, 1),
        ("MeanVarianceNormalization", [(2, 3, 4, 5)], {}, 1),
        ("MeanVarianceNormalization", [(2, 3, 4, 5)], {"axes": (0, 1, 2, 3)}, 1),
    ],
)
def test_normalisations(op_type, inputs, attributes, outputs):
    opset = 17 if op_type == "LayerNormalization" else 13
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(inputs)]
    check(op_type, arrays, attributes, opset, outputs)


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4,)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 2)),
    ],
)
def test_matmul(lhs, rhs):
    check("MatMul", [normal(*lhs), normal(*rhs, seed=1)], {}, 13)
    if 0 not in (*lhs, *rhs):
        ints = [(normal(*s, seed=i) * 100).astype(np.int32) for i, s in enumerate((lhs, rhs))]
        check("MatMul", ints, {}, 13, rtol=0, atol=0)


@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("addend", [None, (), (4,), (1, 4), (3, 1), (3, 4)])
def test_gemm(trans, addend):
    a = normal(3, 5).T.copy() if trans[0] else normal(3, 5)
    b = normal(5, 4, seed=1).T.copy() if trans[1] else normal(5, 4, seed=1)
    c = [] if addend is None else [np.asarray(normal(*addend, seed=2))]
    attributes = {"transA": trans[0], "transB": trans[1], "alpha": 0.5, "beta": 2.0}
    check("Gemm", [a, b, *c], attributes, 13)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bj , ij -> bi", [(2, 3), (4, 3)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ij->ji", [(2, 3)]),
        ("abc->", [(2, 3, 4)]),
        ("Ab,bA->A", [(2, 3), (3, 2)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ],
)
def test_einsum(equation, shapes):
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    check("Einsum", arrays, {"equation": equation}, 12)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("offset_group", [1, 2])
def test_deform_conv(group, offset_group):
    attributes = {
        "group": group,
        "offset_group": offset_group,
        "pads": (1, 0, 1, 2),
        "strides": (2, 1),
        "dilations": (1, 2),
    }
    inputs = [
        normal(2, 4, 6, 7),
        normal(4, 4 // group, 3, 2, seed=1),
        2 * normal(2, offset_group * 12, 3, 7, seed=2),
        normal(4, seed=3),
        normal(2, offset_group * 6, 3, 7, seed=4),
    ]
    check("DeformConv", inputs, attributes)


def test_col2im():
    attributes = {"pads": (1, 0, 1, 1), "strides": (2, 1), "dilations": (1, 2)}
    shapes = [np.int64([5, 6]), np.int64([3, 2])]
    check("Col2Im", [normal(2, 12, 15), *shapes], attributes, 18)
