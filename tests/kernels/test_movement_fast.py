import numpy as np
import pytest

from foldline.kernels.gather_scatter import gather
from foldline.kernels.movement_fast import gather_known, pad_known
from foldline.kernels.padding import pad
from foldline.kernels.registry import Operand, find_kernel

DTYPES = [np.float32, np.float16, np.int64, np.bool_, np.object_]


def operand(array, *, constant=False):
    if array is None:
        return None
    return Operand(array.shape, array.dtype, array if constant else None)


def made(maker, *arrays, known=(), **attributes):
    operands = [operand(a, constant=i in known) for i, a in enumerate(arrays)]
    return maker(*operands, **attributes)


def numbers(*shape, dtype=np.float32):
    values = np.arange(np.prod(shape)).reshape(shape)
    return values.astype(str).astype(object) if dtype is np.object_ else values.astype(dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("place", [0, 1, -2])
@pytest.mark.parametrize("known", [(), (1,)])
def test_a_slice_is_gathered(dtype, axis, place, known):
    data, index = numbers(2, 3, 4, dtype=dtype), np.array(place)
    run = made(gather_known, data, index, known=known, axis=axis)
    for seen in (data, np.asfortranarray(data), data[::-1].copy()[::-1]):
        wanted = gather(data, index, axis=axis)
        result, out = run(seen, index), np.empty_like(wanted)
        assert same(result, wanted)
        assert result.flags.c_contiguous
        assert not np.may_share_memory(result, seen)
        assert run(seen, index, out=out) is out
        assert same(out, wanted)


def test_one_element_is_an_array():
    run = made(gather_known, numbers(3), np.array(2), known=(1,))
    result, out = run(numbers(3), np.array(2)), np.empty((), np.float32)
    assert type(result) is np.ndarray
    assert same(result, np.array(2, np.float32))
    assert run(numbers(3), np.array(2), out=out) is out
    assert out == 2


def test_nothing_is_gathered_of_nothing():
    run = made(gather_known, numbers(0, 3), np.array(1), known=(1,), axis=1)
    assert run(numbers(0, 3), np.array(1)).shape == (0,)


@pytest.mark.parametrize("index", [np.array(3), np.array(-4), np.array([2, 3])])
def test_a_wrong_index_is_named_when_it_is_looked_up(index):
    run = made(gather_known, numbers(3, 2), index, known=(1,))
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        run(numbers(3, 2), index)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap", "constant"])
@pytest.mark.parametrize(
    "pads",
    [
        (0, 0, 0, 0),
        (2, 0, 0, 3),
        (1, 2, 2, 1),
        (0, 4, 0, 1),
        (3, 0, 3, 0),  # longer than what is repeated
        (-1, 1, 0, -2),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pads_are_those_of_the_reference(mode, pads, dtype):
    data, pads = numbers(3, 5, dtype=dtype), np.array(pads)
    wanted = pad(data, pads, mode=mode)
    for known in ((1,), ()):
        run = made(pad_known, data, pads, known=known, mode=mode)
        for seen in (data, np.asfortranarray(data), data[:, ::-1].copy()[:, ::-1]):
            out = np.empty_like(wanted)
            assert same(run(seen, pads), wanted)
            assert run(seen, pads, out=out) is out
            assert same(out, wanted)


@pytest.mark.parametrize("axes", [(1,), (-1,), (2, 0), (1, 1)])
def test_axes_that_are_padded(axes):
    data, given = numbers(4, 5, 3), np.array(axes)
    pads = np.array([1, 2, 1, 0] if len(axes) == 2 else [2, 1])
    arrays = (data, pads, None, given)
    wanted = pad(*arrays, mode="reflect")
    for known in ((1, 3), (1,)):
        assert same(made(pad_known, *arrays, known=known, mode="reflect")(*arrays), wanted)


def test_a_value_that_is_filled_in():
    arrays = (numbers(2, 2), np.array([0, 1, 0, 0]), np.array(7, np.float32))
    run = made(pad_known, *arrays, known=(1, 2))
    assert run(*arrays).tolist() == [[7, 0, 1], [7, 2, 3]]


@pytest.mark.parametrize("pads", [[1, 2, 3], [0, 0, 0, 0, 0, 0]])
def test_pads_that_do_not_fit_are_refused_when_they_are_used(pads):
    run = made(pad_known, numbers(2, 2), np.array(pads), known=(1,), mode="edge")
    with pytest.raises(ValueError, match="2 axes need 4 pads"):
        run(numbers(2, 2), np.array(pads))


def test_an_axis_without_elements_has_nothing_to_repeat():
    run = made(pad_known, numbers(0, 2), np.array([1, 0, 0, 0]), known=(1,), mode="edge")
    with pytest.raises(IndexError):
        run(numbers(0, 2), np.array([1, 0, 0, 0]))


@pytest.mark.parametrize("op_type", ["Gather", "Pad"])
def test_they_serve_fast_mode_only(op_type):
    fast, exact = (find_kernel("", op_type, 21, (grade,)) for grade in ("fast", "exact"))
    assert fast.is_maker
    assert not exact.is_maker
