import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import padding

LINE = np.array([1, 2, 3], np.float32)


def vector(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("mode", "pads", "expected"),
    [
        ("constant", (1, 2), [0, 1, 2, 3, 0, 0]),
        ("edge", (1, 2), [1, 1, 2, 3, 3, 3]),
        ("reflect", (2, 1), [3, 2, 1, 2, 3, 2]),
        ("reflect", (5, 0), [2, 1, 2, 3, 2, 1, 2, 3]),
        ("wrap", (1, 4), [3, 1, 2, 3, 1, 2, 3, 1]),
        ("constant", (-1, 1), [2, 3, 0]),
        ("edge", (-1, 1), [2, 3, 3]),
        ("reflect", (1, -1), [2, 1, 2]),
        ("wrap", (2, -1), [1, 2, 1, 2]),
        ("edge", (0, 0), [1, 2, 3]),
        ("constant", (-2, -2), []),
    ],
)
def test_pad_modes_with_positive_and_negative_pads(mode, pads, expected):
    result = padding.pad(LINE, vector(*pads), mode=mode)
    assert result.dtype == np.float32
    assert result.tolist() == expected
    assert not np.shares_memory(result, LINE)
    out = np.full(len(expected), 9, np.float32)
    assert padding.pad(LINE, vector(*pads), mode=mode, out=out) is out
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.bool_, True),
        (np.int8, -7),
        (np.uint64, 2**64 - 1),
        (np.float64, 1e300),
        (np.float16, -0.0),
        (np.complex64, 2j),
        (object, "x"),
        (ml_dtypes.bfloat16, 2.5),
        (ml_dtypes.int4, -8),
        (ml_dtypes.float8_e4m3fn, 448),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_pad_fills_with_a_constant_of_every_dtype(dtype, value, shape):
    constant = np.array(value, dtype).reshape(shape)
    result = padding.pad(np.zeros((1,), dtype), vector(1, 0), constant)
    assert result.dtype == dtype
    assert result[0] == np.array(value, dtype)
    assert np.signbit(result[0]) == np.signbit(value) if dtype == np.float16 else True


def test_pad_fills_strings_with_the_empty_string():
    assert padding.pad(np.array(["a"], object), vector(1, 1)).tolist() == ["", "a", ""]


def test_pad_reflect_of_one_element_repeats_it():
    assert padding.pad(LINE[:1], vector(2, 1), mode="reflect").tolist() == [1, 1, 1, 1]


def test_pad_of_several_axes_and_of_chosen_axes():
    data = np.array([[1, 2], [3, 4]])
    both = padding.pad(data, vector(1, 0, 0, 1), np.array(9))
    assert both.tolist() == [[9, 9, 9], [1, 2, 9], [3, 4, 9]]
    one = padding.pad(data, vector(1, 0), np.array(9), vector(-2))
    assert one.tolist() == [[9, 9], [1, 2], [3, 4]]
    wrapped = padding.pad(data, vector(1, 1, 0, 0), mode="wrap")
    assert wrapped.tolist() == [[4, 3, 4], [2, 1, 2], [4, 3, 4]]


def test_pad_of_an_empty_axis():
    data = np.zeros((0, 2), np.float32)
    assert padding.pad(data, vector(1, 0, 0, 0), np.array(3, np.float32)).tolist() == [[3, 3]]
    assert padding.pad(data, vector(0, 1, 0, 0), mode="reflect").shape == (0, 3)
    with pytest.raises(IndexError, match="empty"):
        padding.pad(data, vector(1, 0, 0, 0), mode="edge")


def test_pad_of_scalars():
    assert padding.pad(np.array(4), vector()).item() == 4


def test_old_versions_have_attributes():
    assert padding.pad_1(LINE, paddings=(1, 0), value=2.5).tolist() == [2.5, 1, 2, 3]
    assert padding.pad_1(LINE, paddings=(1, 2), mode="edge").tolist() == [1, 1, 2, 3, 3, 3]
    assert padding.pad_1(LINE, paddings=(2, 0), mode="reflect").tolist() == [3, 2, 1, 2, 3]
    assert padding.pad_by_attribute(LINE, pads=(0, 1), mode="edge").tolist() == [1, 2, 3, 3]


def test_pad_refuses_a_wrong_number_of_pads():
    with pytest.raises(ValueError, match="1 axes need 2 pads, not 3"):
        padding.pad(LINE, vector(1, 1, 1))


@pytest.mark.parametrize(
    ("target", "expected"),
    [(3, [1, 2, 3]), (2, [1, 2]), (1, [2]), (4, [1, 2, 3, 0]), (6, [0, 1, 2, 3, 0, 0]), (0, [])],
)
def test_center_crop_pad_removes_and_adds_one_more_at_the_end(target, expected):
    assert padding.center_crop_pad(LINE, vector(target)).tolist() == expected


def test_center_crop_pad_of_chosen_axes():
    data = np.arange(12).reshape(3, 4)
    result = padding.center_crop_pad(data, vector(2, 5), axes=(-1, 0))
    assert result.tolist() == [[0, 0], [1, 2], [5, 6], [9, 10], [0, 0]]
