"""Operators that copy elements to other places by a fixed pattern."""

from __future__ import annotations

import numpy as np

from foldline.kernels.arguments import copy_of, ints, zero_of
from foldline.kernels.registry import Array, kernel


@kernel("Concat", until=4, exact=True)
def concat_1(*inputs: Array, axis: int | None = None, out: Array | None = None) -> Array:
    """Concat 1: as Concat 4 with axis 1 by default."""
    return concat(*inputs, axis=1 if axis is None else axis, out=out)


@kernel("Concat", since=4, exact=True, any_order=True)
def concat(*inputs: Array, axis: int, out: Array | None = None) -> Array:
    """Concat 4+: join tensors of one dtype along `axis`; the other sizes must agree."""
    return np.concatenate(inputs, axis, out=out)


@kernel("Tile", until=6, exact=True)
def tile_axis(data: Array, tiles: Array, axis: Array, *, out: Array | None = None) -> Array:
    """Tile 1: repeat one `axis`, given as a scalar input, `tiles` times."""
    repeats = [1] * data.ndim
    repeats[int(axis.item())] = int(tiles.item())
    return _tiled(data, repeats, out)


@kernel("Tile", since=6, exact=True)
def tile(data: Array, repeats: Array, *, out: Array | None = None) -> Array:
    """Tile 6+: repeat every axis i `repeats[i]` times; one entry for each axis."""
    return _tiled(data, ints(repeats), out)


@kernel("DepthToSpace", exact=True)
def depth_to_space(
    data: Array, *, blocksize: int, mode: str = "DCR", out: Array | None = None
) -> Array:
    """DepthToSpace 1+: (N, C·b², H, W) to (N, C, H·b, W·b).

    The channel holds block row, block column, depth (DCR) or depth, row, column (CRD).
    """
    n, channels, height, width = data.shape
    shape = (n, channels // (blocksize * blocksize), height * blocksize, width * blocksize)
    result = np.empty(shape, data.dtype) if out is None else out
    _copy_blocks(_in_depth(data, blocksize, mode), _in_space(result, blocksize))
    return result


@kernel("SpaceToDepth", exact=True)
def space_to_depth(
    data: Array, *, blocksize: int, mode: str = "DCR", out: Array | None = None
) -> Array:
    """SpaceToDepth 1+: (N, C, H·b, W·b) to (N, C·b², H, W), the inverse of DepthToSpace."""
    n, depth, height, width = data.shape
    shape = (n, depth * blocksize * blocksize, height // blocksize, width // blocksize)
    result = np.empty(shape, data.dtype) if out is None else out
    _copy_blocks(_in_space(data, blocksize), _in_depth(result, blocksize, mode))
    return result


@kernel("ReverseSequence", exact=True)
def reverse_sequence(
    data: Array, sequence_lens: Array, *, batch_axis: int = 1, time_axis: int = 0
) -> Array:
    """ReverseSequence 10+: the first `sequence_lens[b]` steps of entry b in reverse order.

    `batch_axis` and `time_axis` are 0 and 1, either way round.
    """
    steps, entries = data.shape[time_axis], data.shape[batch_axis]
    spread = (slice(None), None) if time_axis == 0 else (None, slice(None))
    time = np.arange(steps, dtype=np.intp)[spread]
    entry = np.arange(entries, dtype=np.intp)[spread[::-1]]
    lengths = sequence_lens[spread[::-1]]
    source = np.where(time < lengths, lengths - 1 - time, time)
    return data[(source, entry) if time_axis == 0 else (entry, source)]


@kernel("Trilu", inplace=(0,), exact=True)
def trilu(
    data: Array, k: Array | None = None, *, upper: int = 1, out: Array | None = None
) -> Array:
    """Trilu 14: matrices (the last two axes) with zeros below diagonal `k`, or above it."""
    rows, columns = data.shape[-2:]
    # Beyond the corners nothing changes, and numpy's mask would overflow.
    diagonal = 0 if k is None else min(max(int(k.item()), -rows - 1), columns + 1)
    below = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=bool)
    result = copy_of(data, out)
    np.copyto(result, zero_of(data.dtype), where=below if upper else ~below)
    return result


def _tiled(data: Array, repeats: list[int] | tuple[int, ...], out: Array | None) -> Array:
    """Copy through a shape that has an axis for the repetitions before every axis of `data`."""
    pairs = tuple(zip(repeats, data.shape, strict=True))
    if out is None:
        out = np.empty([count * size for count, size in pairs], data.dtype)
    spread = tuple(n for _, size in pairs for n in (1, size))
    out.reshape(tuple(n for pair in pairs for n in pair))[...] = data.reshape(spread)
    return out


def _in_depth(data: Array, b: int, mode: str) -> Array:
    """(N, depth, block row, block column, H, W) of a tensor with the blocks in its channels."""
    n, channels, height, width = data.shape
    depth = channels // (b * b)
    if mode == "DCR":
        return data.reshape(n, b, b, depth, height, width).transpose(0, 3, 1, 2, 4, 5)
    return data.reshape(n, depth, b, b, height, width)


def _in_space(data: Array, b: int) -> Array:
    """The same axes of a tensor with the blocks in its rows and columns."""
    n, depth, height, width = data.shape
    return data.reshape(n, depth, height // b, b, width // b, b).transpose(0, 1, 3, 5, 2, 4)


def _copy_blocks(source: Array, target: Array) -> None:
    """Copy one place of all blocks at a time: five times as fast as one transposed copy."""
    for row in range(source.shape[2]):
        for column in range(source.shape[3]):
            target[:, :, row, column] = source[:, :, row, column]
