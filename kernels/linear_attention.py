"""LinearAttention 27: attention without softmax, as a recurrence over one matrix a head.

S' = exp(decay) S + key (x) value'        value' = beta (value - key @ (exp(decay) S)), or value
output = scale query @ S'
"""

from __future__ import annotations

import math

import numpy as np

from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, kernel

_RULES = {
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated_delta": (True, True),
}
"""Whether a rule takes `decay`, and whether it takes `beta`."""


@kernel("LinearAttention")
def linear_attention(
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array]:
    """LinearAttention 27: inputs `(batch, length, heads * size)`; gives those and the last state.

    The state `(batch, kv_heads, key_size, value_size)` is float32 while it runs and has the type
    of the past state, or of the query. `decay` has one element a head or one for each element of
    a key, `beta` one a head or one for all. A scale of 0 is `1 / sqrt(key_size)`. `chunk_size` is
    a hint without effect. ValueError when the rule and the inputs do not fit together.
    """
    _check_rule(update_rule, decay, beta)
    if kv_num_heads <= 0 or q_num_heads <= 0 or q_num_heads % kv_num_heads:
        raise ValueError(
            f"q_num_heads={q_num_heads} is not a positive multiple of kv_num_heads={kv_num_heads}"
        )
    batch, steps, _ = query.shape
    group = q_num_heads // kv_num_heads
    heads = (batch, steps, kv_num_heads)
    size, value_size = query.shape[2] // q_num_heads, value.shape[2] // kv_num_heads
    queries = widened(query).reshape(*heads, group, size)
    keys = widened(key).reshape(*heads, size, 1)
    values = widened(value).reshape(*heads, 1, value_size)
    factor = queries.dtype.type(scale or 1 / math.sqrt(size))
    gates = None if decay is None else _last_axis_split(np.exp(widened(decay)), kv_num_heads)
    rates = None if beta is None else widened(beta)[..., None, None]
    state = np.zeros((batch, kv_num_heads, size, value_size), queries.dtype)
    if past_state is not None:
        state[...] = past_state
    outputs = np.empty((*heads, group, value_size), queries.dtype)
    for t in range(steps):
        new = values[:, t]
        if gates is not None:
            np.multiply(state, gates[:, t], out=state)
        if rates is not None:
            new = rates[:, t] * (new - keys[:, t].swapaxes(-1, -2) @ state)
        state += keys[:, t] * new
        np.matmul(queries[:, t], state, out=outputs[:, t])
    outputs *= factor
    state_dtype = query.dtype if past_state is None else past_state.dtype
    packed = outputs.reshape(batch, steps, q_num_heads * value_size)
    return rounded(packed, query.dtype), rounded(state, state_dtype)


def _last_axis_split(x: Array, heads: int) -> Array:
    """`(…, heads * n)` as `(…, heads, n, 1)`."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads, 1)


def _check_rule(rule: str, decay: Array | None, beta: Array | None) -> None:
    if rule not in _RULES:
        raise ValueError(f"update_rule is {rule!r}, expected one of {', '.join(_RULES)}")
    for name, given, wanted in zip(("decay", "beta"), (decay, beta), _RULES[rule], strict=True):
        if (given is not None) != wanted:
            raise ValueError(f"update_rule {rule!r} {'needs' if wanted else 'forbids'} {name}")
