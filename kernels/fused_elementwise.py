"""Activations that fusion forms of several operators, where ONNX has them later only.

Domain foldline. They are the kernels of ONNX's operators, so that a model computes the same bits
whichever operator set it imports.
"""

from __future__ import annotations

from collections.abc import Callable

from foldline.kernels.activation import gelu, hard_swish, mish, swish
from foldline.kernels.registry import Array, kernel

DOMAIN = "foldline"

SHARED: dict[str, Callable[..., Array]] = {
    "Gelu": gelu,
    "HardSwish": hard_swish,
    "Mish": mish,
    "Swish": swish,
}
"""Kernels by the operators of both domains that they compute."""

for _op_type, _function in SHARED.items():
    kernel(_op_type, domain=DOMAIN)(_function)
