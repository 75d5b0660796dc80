"""Each fused operator in small models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.stages.check import Array


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def codes(*shape: int, dtype: Any = np.uint8) -> Array:
    return np.random.default_rng(1).integers(0, 100, shape).astype(dtype)


def scale(value: float) -> Array:
    return np.float32(value).reshape(())


def zero(dtype: Any = np.uint8) -> Array:
    return np.array(3, dtype)


@dataclass(frozen=True)
class Case:
    """One fused operator on the inputs of a model and on constants."""

    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fed: Sequence[int] = (0,)
    """Which inputs are inputs of the model."""
    outputs: int = 1
    opset: int = 13

    def model(self, op_type: str) -> onnx.ModelProto:
        names = ["" if x is None else f"i{n}" for n, x in enumerate(self.inputs)]
        outputs = [f"y{n}" for n in range(self.outputs)]
        made = helper.make_node(
            op_type, names, outputs, name="one", domain="foldline", **self.attributes
        )
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in self.feed.items()
        ]
        given = ((f"i{n}", x) for n, x in enumerate(self.inputs) if n not in self.fed)
        constants = [numpy_helper.from_array(x, n) for n, x in given if x is not None]
        is_code = op_type.startswith("QLinear")
        element = infos[0].type.tensor_type.elem_type if is_code else onnx.TensorProto.FLOAT
        sizes = [f"d{axis}" for axis in range(self.inputs[0].ndim)]
        results = [helper.make_tensor_value_info(name, element, sizes) for name in outputs]
        graph = helper.make_graph([made], "g", infos, results, constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("foldline", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    @property
    def feed(self) -> dict[str, Array]:
        return {f"i{n}": x for n, x in enumerate(self.inputs) if n in self.fed and x is not None}


Q, K, V = floats(2, 4, 3, 8), floats(2, 4, 5, 8, seed=1), floats(2, 4, 5, 8, seed=2)
IMAGE, FILTER = floats(1, 2, 6, 6), floats(3, 2, 3, 3, seed=3)
X = floats(2, 3, 8)
HALF = scale(0.05)
RELU = {"activation": "Relu"}

CASES: dict[str, list[Case]] = {
    "Attention": [
        Case([Q, K, V], {"scale": 0.5}, range(3)),
        Case([Q, K, V, floats(3, 5)], {"scale": 0.5}, range(3)),
        Case(
            [
                Q,
                K,
                V,
                np.tri(3, 5) > 0,
            ],
            {"mask_value": -1e9, "key_perm": [0, 1, 2, 3], "output_perm": [0, 2, 1, 3]},
            range(3),
        ),
        Case([Q, K[:, :2], V[:, :2]], {"groups": 2, "kv_heads": 2}, range(3)),
        Case([Q, K, V], {"guarded": 1}, range(3)),
    ],
    "Conv": [
        Case([IMAGE, FILTER, floats(3)], RELU),
        Case([IMAGE, FILTER, None, floats(1, 3, 4, 4)], {"activation": "Sigmoid"}),
        Case([IMAGE, FILTER], {"activation": "Clip", "activation_params": [0.0, 6.0]}),
        Case([IMAGE, FILTER], {"activation": "Gelu", "activation_params": [0.0]}),
    ],
    "ConvTranspose": [Case([IMAGE, floats(2, 3, 3, 3)], {**RELU, "strides": [2, 2]})],
    "ConvIntegerToFloat": [
        Case([codes(1, 2, 6, 6), codes(3, 2, 3, 3), zero(), zero(), HALF, None, floats(1, 3, 1, 1)])
    ],
    "DynamicQuantizeConv": [
        Case([IMAGE, codes(3, 2, 3, 3), zero(), HALF, None, floats(1, 3, 1, 1)]),
        Case([IMAGE, codes(3, 2, 3, 3), zero(), HALF], {"pads": [1, 1, 1, 1]}),
    ],
    "DynamicQuantizeMatMul": [Case([X, codes(8, 4), zero(), HALF, floats(4)])],
    "Gelu": [Case([X]), Case([X], {"approximate": "tanh"})],
    "GroupNormalization": [
        Case([floats(1, 4, 3, 3), floats(4, 1, 1), floats(4, 1, 1)], {"num_groups": 2})
    ],
    "HardSwish": [Case([X])],
    "LayerNormalization": [Case([X, floats(8), floats(8)]), Case([X, floats(8)])],
    "Linear": [
        Case([X, floats(8, 4), floats(4)]),
        Case([X, floats(8, 4), floats(4)], {"activation": "Tanh"}),
        Case([floats(3, 8), floats(4, 8), floats(4)], {"product": "Gemm", "transB": 1, **RELU}),
    ],
    "MatMulIntegerToFloat": [
        Case([codes(2, 8), codes(8, 4), zero(), zero(), HALF, floats(4)]),
        Case([codes(2, 8), codes(8, 4), None, None, HALF, floats(4)], {"bias_first": 1}),
    ],
    "Mish": [Case([X])],
    "QLinearActivation": [
        Case([codes(2, 8), HALF, zero(), scale(0.01), zero()], {"activation": "Sigmoid"})
    ],
    "QLinearAdd": [
        Case(
            [codes(2, 8), HALF, zero(), codes(2, 8), scale(0.02), zero(), scale(0.1), zero()],
            fed=(0, 3),
        )
    ],
    "QLinearBatchNormalization": [
        Case(
            [
                *(codes(1, 2, 3, 3), HALF, zero(), scale(0.02), zero()),
                *(floats(2), floats(2), floats(2), np.abs(floats(2)) + 1),
            ]
        )
    ],
    "QLinearGemm": [
        Case(
            [
                *(codes(2, 8), HALF, zero(), codes(8, 4), scale(0.02), zero(), scale(0.1), zero()),
                *(np.zeros(4, np.int32), np.zeros(4, np.float32)),
            ]
        )
    ],
    "QLinearGlobalAveragePool": [
        Case([codes(1, 2, 3, 3), HALF, zero(), scale(0.02), zero()]),
    ],
    "QLinearMul": [
        Case(
            [codes(2, 8), HALF, zero(), codes(2, 8), scale(0.02), zero(), scale(0.1), zero()],
            fed=(0, 3),
        )
    ],
    "RMSNormalization": [Case([X, floats(8)]), Case([X, floats(8)], {"inverse": 1})],
    "RotaryEmbedding": [
        Case([Q, floats(3, 8), floats(3, 8)], fed=range(3)),
        Case([Q, floats(3, 8), floats(3, 8)], {"interleaved": 1}, range(3)),
    ],
    "SkipLayerNormalization": [
        Case([X, X + 1, floats(8), floats(8)], fed=(0, 1)),
        Case([X, X + 1, floats(8), floats(8)], fed=(0, 1), outputs=2),
    ],
    "SkipRMSNormalization": [
        Case([X, X + 1, floats(8)], fed=(0, 1)),
        Case([X, X + 1, floats(8)], {"inverse": 1}, (0, 1), 2),
    ],
    "Swish": [Case([X]), Case([X], {"alpha": 1.5})],
}
