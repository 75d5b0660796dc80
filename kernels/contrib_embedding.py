"""Layer normalisation of sums of embeddings, as ONNX Runtime fuses it.

Domain com.microsoft, version 1 of each operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.normalisation import layer_normalization_reference
from foldline.kernels.precision import rounded, widened
from foldline.kernels.quantisation import dequantize_linear
from foldline.kernels.registry import Array, kernel

DOMAIN = "com.microsoft"
Function: TypeAlias = Callable[..., Any]


def embed_layer_normalization_by(normalise: Function) -> Function:
    """The kernel of EmbedLayerNormalization, given LayerNormalization."""

    def embed_layer_normalization(
        input_ids: Array,
        segment_ids: Array | None,
        word_embedding: Array,
        position_embedding: Array,
        segment_embedding: Array | None,
        gamma: Array,
        beta: Array,
        mask: Array | None = None,
        position_ids: Array | None = None,
        *,
        epsilon: float = 1e-12,
        mask_index_type: int | None = None,
    ) -> tuple[Array, Array, Array]:
        """EmbedLayerNormalization: LayerNormalization of the sum of two or three embeddings.

        Ids are `(batch, length)`; positions are counted from 0 unless given. The other results are
        the number of ones in each row of `mask`, 0 without mask, and the sum.
        """
        batch, length = input_ids.shape
        places: Array = np.arange(length, dtype=np.int32)
        positions = places if position_ids is None else position_ids
        total = widened(word_embedding[input_ids]) + widened(position_embedding[positions])
        if segment_ids is not None and segment_embedding is not None:
            total += widened(segment_embedding[segment_ids])
        y, *_ = normalise(total, widened(gamma), widened(beta), epsilon=epsilon)
        counts = np.zeros(batch, np.int32)
        if mask is not None:
            counts = np.count_nonzero(mask == 1, axis=1).astype(np.int32)
        dtype = word_embedding.dtype
        return rounded(y, dtype), counts, rounded(total, dtype)

    return embed_layer_normalization


def quantised_embed_layer_normalization_by(embed: Function, dequantize: Function) -> Function:
    """The kernel of QEmbedLayerNormalization, given the operators that it is made of."""

    def quantised_embed_layer_normalization(
        input_ids: Array,
        segment_ids: Array | None,
        word_embedding: Array,
        position_embedding: Array,
        segment_embedding: Array | None,
        gamma: Array,
        beta: Array,
        mask: Array | None,
        *quantisation: Array | None,
        epsilon: float = 1e-12,
    ) -> tuple[Array, Array]:
        """QEmbedLayerNormalization: EmbedLayerNormalization of 8-bit tables, gamma and beta.

        `quantisation` are the five scales, then the five zero points, in the order of the tables.
        """
        tables = (word_embedding, position_embedding, segment_embedding, gamma, beta)
        word, position, segment, wide_gamma, wide_beta = (
            None if x is None or scale is None else dequantize(x, scale, zero)
            for x, scale, zero in zip(tables, quantisation[:5], quantisation[5:], strict=True)
        )
        assert word is not None
        assert position is not None
        assert wide_gamma is not None
        assert wide_beta is not None
        y, counts, _ = embed(
            input_ids,
            segment_ids,
            word,
            position,
            segment,
            wide_gamma,
            wide_beta,
            mask,
            epsilon=epsilon,
        )
        return y, counts

    return quantised_embed_layer_normalization


_embed = embed_layer_normalization_by(layer_normalization_reference)
kernel("EmbedLayerNormalization", domain=DOMAIN)(_embed)
kernel("QEmbedLayerNormalization", domain=DOMAIN)(
    quantised_embed_layer_normalization_by(_embed, dequantize_linear)
)
