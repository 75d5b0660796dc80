"""The patterns that are counted, as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.pattern_shapes import (
    Found,
    activated,
    attention,
    batch_normalised,
    biased,
    gelu,
    gemm,
    hard_swish,
    layer_normalised,
    of_integers,
    quantised,
    rms_normalised,
    swish,
)
from foldline.dialects.onnx.op import NodeOp


@dataclass(frozen=True)
class PatternKind:
    """One pattern: how it is found, and how one sees that it has been fused."""

    name: str
    find: Callable[[NodeOp], Found]
    """The nodes of an instance that an operation stands for."""
    passes: tuple[str, ...]
    """Those whose remarks say why one is not fused."""
    searched_again: bool = False
    """Whether all that is found after fusion is left, as new nodes may have taken the places of
    those before; else an instance is left whose first node still stands."""


KINDS: tuple[PatternKind, ...] = (
    PatternKind("Conv + BatchNormalization", batch_normalised, ("conv-batchnorm-fold",)),
    PatternKind(
        "Conv + activation",
        activated,
        ("conv-activation", "conv-batchnorm-fold", "conv-scale-fold"),
        searched_again=True,
    ),
    PatternKind("SiLU", swish, ("swish", "quick-gelu")),
    PatternKind("HardSwish", hard_swish, ("hard-swish",)),
    PatternKind("Gelu", gelu, ("gelu", "tanh-gelu")),
    PatternKind("LayerNorm", layer_normalised, ("layer-normalization", "group-normalization")),
    PatternKind("RMSNorm", rms_normalised, ("rms-normalization",)),
    PatternKind("attention", attention, ("attention",)),
    PatternKind("MatMul + bias", biased, ("linear-pack-fuse", "matmul-add-to-gemm")),
    PatternKind("Gemm", gemm, ("linear-pack-fuse",)),
    PatternKind("MatMulInteger", of_integers("MatMulInteger"), ("matmul-integer-fusion",)),
    PatternKind("ConvInteger", of_integers("ConvInteger"), ("conv-integer-fusion",)),
    PatternKind("QDQ product", quantised, ("qdq",)),
)
