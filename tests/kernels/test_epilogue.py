"""The contract of epilogues: a tile at a time, nothing but the tile."""

import numpy as np
import pytest

from foldline.kernels.epilogue import (
    CHUNK_BYTES,
    Epilogue,
    activation_of,
    exactly_activated,
    in_place,
)

FLOAT = np.dtype(np.float32)
TILES = [(0, 0, 70, 300), (3, 100, 41, 57), (69, 0, 1, 300), (0, 299, 70, 1)]
ACTIVATIONS = [("", ()), ("Relu", ()), ("Gelu", (0.0,)), ("Clip", (-0.5, 0.5)), ("HardSwish", ())]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def expected(tile, bias, name, params):
    y = tile if bias is None else tile + bias
    return activation_of(name, params, FLOAT).run(y, out=np.empty_like(y)) if name else y.copy()


@pytest.mark.parametrize(("name", "params"), ACTIVATIONS)
@pytest.mark.parametrize("bias", [None, (300,), (1, 300), (1,), ()])
@pytest.mark.parametrize(
    "tile", [(0, 0, 70, 300), (3, 100, 41, 57), (69, 0, 1, 300), (0, 299, 70, 1)]
)
def test_a_tile_is_finished_and_nothing_else(name, params, bias, tile):
    row0, col0, rows, cols = tile
    given = None if bias is None else normal(*bias, seed=1)
    matrix = normal(70, 300) * 3
    before = matrix.copy()
    part = matrix[row0 : row0 + rows, col0 : col0 + cols]
    apply = Epilogue(given, activation_of(name, params, FLOAT) if name else None).apply
    if bias is None and not name:
        assert apply is None
        return
    apply(part, *tile)
    columns = None if given is None else np.broadcast_to(given.reshape(-1), 300)
    whole = expected(before, columns, name, params)
    before[row0 : row0 + rows, col0 : col0 + cols] = whole[row0 : row0 + rows, col0 : col0 + cols]
    np.testing.assert_array_equal(matrix.view(np.uint32), before.view(np.uint32))


@pytest.mark.parametrize(
    ("name", "params"),
    [("Relu", ()), ("Sigmoid", ()), ("HardSigmoid", (0.3, 0.25)), ("HardSwish", ())],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_straight_to_the_ufuncs_the_bits_are_those_of_the_operator(name, params, dtype):
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3, -3, 1e-45, -1e38]
    x = np.concatenate((special, normal(70) * 3)).astype(dtype)
    wanted = activation_of(name, params, x.dtype).run(x, out=np.empty_like(x))
    apply = in_place(name, params, x.dtype)
    assert apply is not None
    wide = np.repeat(x, 2).reshape(-1, 2)
    apply(wide[:, 0])
    apply(x)
    assert x.tobytes() == wanted.tobytes() == np.ascontiguousarray(wide[:, 0]).tobytes()


def test_what_is_more_than_ufuncs_is_not_straight():
    assert in_place("Gelu", (0.0,), FLOAT) is None
    assert in_place("Clip", (0.0, 1.0), FLOAT) is None
    assert in_place("HardSwish", (), np.dtype(np.float16)) is None


@pytest.mark.parametrize("width", [700, 1 << 17])
@pytest.mark.parametrize("is_strided", [False, True])
def test_a_large_tile_goes_through_memory_in_parts(width, is_strided):
    rows = 2 * CHUNK_BYTES // (4 * width) + 3
    matrix = normal(rows, width + 5)[:, :width] if is_strided else normal(rows, width)
    bias = normal(width, seed=1)
    whole = expected(matrix, bias, "Gelu", (0.0,))
    Epilogue(bias, activation_of("Gelu", (0.0,), FLOAT)).apply(matrix, 0, 0, rows, width)
    np.testing.assert_array_equal(matrix.view(np.uint32), whole.view(np.uint32))


def test_the_form_of_gelu_is_a_number():
    x = normal(9)
    forms = {p: activation_of("Gelu", (p,), FLOAT).run(x, out=np.empty_like(x)) for p in (0.0, 1.0)}
    assert not np.array_equal(forms[0.0], forms[1.0])
    np.testing.assert_allclose(forms[0.0], forms[1.0], atol=1e-3)


def test_exact_mode_has_its_own_kernels_and_one_nan():
    x = np.array([np.uint32(0xFFC00001)]).view(np.float32)
    assert exactly_activated(x, "", ()) is x
    assert exactly_activated(x, "Tanh", ()).view(np.uint32) == 0x7FC00000
    with pytest.raises(ValueError, match="unknown activation 'Softmax'"):
        exactly_activated(x, "Softmax", ())
