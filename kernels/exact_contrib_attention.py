"""Attentions of com.microsoft in exact mode, and the rotation of their heads.

They are those of fast mode with another attention, `exact_attention`, and exact projections.
"""

from __future__ import annotations

from foldline.kernels.contrib_attention import attention_by, multi_head_attention_by
from foldline.kernels.contrib_grouped_attention import (
    group_query_attention_by,
    rotary_embedding_of_positions,
)
from foldline.kernels.contrib_heads import FILTER, Scores, refuse, self_attention
from foldline.kernels.exact_attention import attention
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_contrib import DOMAIN, matmul_integer_to_float
from foldline.kernels.exact_normalisation import rms_normalization
from foldline.kernels.exact_products import product
from foldline.kernels.registry import Array, kernel


@kernel("QAttention", domain=DOMAIN, grade="exact")
@canonicalised
def quantised_attention(
    x: Array,
    weight: Array,
    bias: Array,
    input_scale: Array,
    weight_scale: Array,
    mask_index: Array | None = None,
    input_zero_point: Array | None = None,
    weight_zero_point: Array | None = None,
    past: Array | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = FILTER,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
    output_count: int = 1,
) -> Array | tuple[Array, ...]:
    """QAttention: Attention whose projection is a MatMulIntegerToFloat."""
    refuse(do_rotary, past_present_share_buffer, past)
    projected = matmul_integer_to_float(
        x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
    )
    sizes = (weight.shape[1] // 3,) * 3
    scores = Scores(num_heads, scale, unidirectional, mask_filter_value)
    return self_attention(attention, projected, sizes, past, scores, mask_index, None, output_count)


kernel("Attention", domain=DOMAIN, grade="exact")(canonicalised(attention_by(product, attention)))
kernel("MultiHeadAttention", domain=DOMAIN, grade="exact")(
    canonicalised(multi_head_attention_by(attention))
)
kernel("GroupQueryAttention", domain=DOMAIN, grade="exact")(
    canonicalised(group_query_attention_by(attention, rms_normalization))
)
# Products and sums of two numbers, element by element: no order to define.
kernel("RotaryEmbedding", domain=DOMAIN, grade="exact")(
    canonicalised(rotary_embedding_of_positions)
)
