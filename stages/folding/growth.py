"""The rule that keeps models from growing: what stored bytes new constants may have."""

from __future__ import annotations

from collections.abc import Iterable

from foldline.dialects.onnx.tensor import TensorAttr

MAX_BYTES = 64 * 1024
"""Unless `fold.maxBytes` says otherwise: results up to this size may be larger than what they
are made of."""


def growth(size: int, given: Iterable[TensorAttr], limit: int | None) -> str | None:
    """Why a result of `size` stored bytes is too large for the constants that it is made of.

    A splat weighs one element. Any size does for a `limit` of None, as with `export.grow`.
    """
    stored = sum({id(t.data): t.data.stored_bytes for t in given}.values())
    if limit is None or size <= limit or size <= stored:
        return None
    return (
        f"its result of {size} bytes is larger than its inputs of {stored} "
        f"bytes and than fold.maxBytes = {limit}"
    )
