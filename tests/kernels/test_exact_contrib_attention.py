"""Attentions of com.microsoft in exact mode: the values of fast mode, the one NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.exact_attention import attention
from tests.kernels.both_modes import Case, agree, codes, has_the_one_nan, numbers, run, scalar

HEADS = {"num_heads": 2}
GROUPS = {"num_heads": 4, "kv_num_heads": 2}
SEEN = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32)
ANGLES = np.arange(12)[:, None] * np.linspace(1, 0.01, 4)
CACHES = [np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)]


def own(*more: Any) -> list[Any]:
    return [numbers(2, 4, 5), numbers(5, 18), numbers(18), *more]


def grouped(length: int, past: int, *more: Any) -> list[Any]:
    total = length + past
    cache = numbers(2, 2, past, 8) if past else None
    parts = [numbers(2, length, 32), numbers(2, length, 16), numbers(2, length, 16) * 2]
    ends = np.full(2, total - 1, np.int32)
    return [*parts, cache, cache, ends, scalar(total, np.int32), *more]


CASES: dict[str, Case] = {
    "own": ("Attention", own(), HEADS),
    "own, masked": ("Attention", own(SEEN), {**HEADS, "unidirectional": 1}),
    "own, past": (
        "Attention",
        own(None, numbers(2, 2, 2, 3, 3), numbers(2, 2, 4, 7)),
        {**HEADS, "output_count": 2, "scale": 0.4},
    ),
    "own, sizes": (
        "Attention",
        [numbers(2, 4, 5), numbers(5, 14), numbers(14)],
        {**HEADS, "qkv_hidden_sizes": (4, 4, 6)},
    ),
    "quantised": (
        "QAttention",
        [
            *(codes(2, 4, 8, dtype=np.uint8), codes(8, 18) // 4, numbers(18)),
            *(scalar(0.01), scalar(0.004), SEEN, scalar(120, np.uint8), scalar(2, np.int8)),
        ],
        {**HEADS, "unidirectional": 1},
    ),
    "heads": (
        "MultiHeadAttention",
        [numbers(2, 4, 6), numbers(2, 3, 6), numbers(2, 3, 4), numbers(16)],
        {**HEADS, "output_count": 3},
    ),
    "heads, packed": ("MultiHeadAttention", [numbers(2, 4, 2, 3, 5)], HEADS),
    "heads, past": (
        "MultiHeadAttention",
        [
            *(numbers(2, 4, 6), numbers(2, 3, 6), numbers(2, 3, 6), None, None),
            *(numbers(2, 2, 4, 8), numbers(2, 2, 5, 3), numbers(2, 2, 5, 3) * 2),
        ],
        {**HEADS, "output_count": 4},
    ),
    "grouped": ("GroupQueryAttention", grouped(5, 0), GROUPS),
    "grouped, turned": ("GroupQueryAttention", grouped(1, 7, *CACHES), {**GROUPS, "do_rotary": 1}),
    "grouped, capped": (
        "GroupQueryAttention",
        grouped(3, 4),
        {**GROUPS, "softcap": 2.0, "local_window_size": 3, "smooth_softmax": 1},
    ),
    "grouped, normed": (
        "GroupQueryAttention",
        [*grouped(3, 4, *[None] * 7), numbers(8), numbers(8) * 2],
        GROUPS,
    ),
    "turned": ("RotaryEmbedding", [numbers(2, 5, 16), np.array([3]), *CACHES], {"interleaved": 1}),
    "turned in part": (
        "RotaryEmbedding",
        [numbers(2, 2, 3, 12), np.array([[0, 2, 1], [5, 9, 7]]), *CACHES],
        {"num_heads": 2, "rotary_embedding_dim": 8},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    agree(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_nan(case: str) -> None:
    has_the_one_nan(CASES[case])


@pytest.mark.parametrize("case", [case for case in CASES if case != "quantised"])
def test_halves_are_near(case: str) -> None:
    op_type, inputs, attributes = CASES[case]
    half = [
        x.astype(np.float16) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x
        for x in inputs
    ]
    found = run("exact", op_type, *half, **attributes)
    wide = run("exact", op_type, *inputs, **attributes)
    for a, b in zip(found, wide, strict=True):
        assert a.dtype == np.float16
        np.testing.assert_allclose(a.astype(float), b, rtol=0.05, atol=0.05)


def test_heads_are_those_of_attention() -> None:
    q, k, v = numbers(2, 4, 6), numbers(2, 3, 6), numbers(2, 3, 4)
    (y,) = run("exact", "MultiHeadAttention", q, k, v, **HEADS)
    expected = attention(q, k, v, q_num_heads=2, kv_num_heads=2)
    assert y.tobytes() == expected.tobytes()


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="do_rotary is not supported"):
        run("exact", "Attention", *own(), **HEADS, do_rotary=1)
    with pytest.raises(ValueError, match="do_rotary is not supported"):
        run("exact", "QAttention", *CASES["quantised"][1], **HEADS, do_rotary=1)
    with pytest.raises(ValueError, match="only attention with a plain cache"):
        run("exact", "GroupQueryAttention", *grouped(3, 0), **GROUPS, qk_output=1)
