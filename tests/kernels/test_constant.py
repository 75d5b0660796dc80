import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.constant import (
    constant,
    constant_of_shape,
    constant_of_tensor,
    constant_of_value,
    identity,
)


@pytest.mark.parametrize(
    ("attributes", "dtype", "expected"),
    [
        ({"value": np.array([1, 2], np.uint8)}, np.uint8, [1, 2]),
        ({"sparse_value": np.array([0.0, 2.0])}, np.float64, [0, 2]),
        ({"value_float": 0.5}, np.float32, 0.5),
        ({"value_floats": (0.5, 1.5)}, np.float32, [0.5, 1.5]),
        ({"value_floats": ()}, np.float32, []),
        ({"value_int": 2**62 + 1}, np.int64, 2**62 + 1),
        ({"value_ints": (1, -2)}, np.int64, [1, -2]),
        ({"value_string": "ab"}, object, "ab"),
        ({"value_strings": ("ab", "é")}, object, ["ab", "é"]),
    ],
)
def test_constant_forms(attributes, dtype, expected):
    result = constant(**attributes)
    assert type(result) is np.ndarray
    assert result.dtype == dtype
    assert result.tolist() == expected


@pytest.mark.parametrize("name", ["value", "sparse_value"])
def test_version_11_has_tensors_only(name):
    given = np.array([0.0, 2.0])
    result = constant_of_tensor(**{name: given})
    assert result.tolist() == [0, 2]
    assert not np.may_share_memory(result, given)
    with pytest.raises(ValueError, match="got value, sparse_value"):
        constant_of_tensor(value=given, sparse_value=given)


def test_constant_is_a_copy_of_the_attribute():
    value = np.array([1.0])
    assert not np.may_share_memory(constant_of_value(value=value), value)


def test_constant_needs_exactly_one_value():
    with pytest.raises(ValueError, match="exactly one value, got none"):
        constant()
    with pytest.raises(ValueError, match="got value_float, value_int"):
        constant(value_int=1, value_float=1.0)


class TestConstantOfShape:
    def test_default_is_float_zero(self):
        result = constant_of_shape(np.array([2, 3]))
        assert result.dtype == np.float32
        assert result.tolist() == [[0, 0, 0], [0, 0, 0]]

    @pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float16, ml_dtypes.bfloat16])
    @pytest.mark.parametrize("value", [0, 1])
    def test_value_gives_the_type(self, value, dtype):
        result = constant_of_shape(np.array([3]), value=np.array([value], dtype))
        assert result.dtype == dtype
        assert result.tolist() == [value] * 3

    def test_negative_zero_and_sub_byte_types_keep_their_bits(self):
        assert np.signbit(constant_of_shape(np.array([1]), value=np.array([-0.0]))[0])
        four = constant_of_shape(np.array([2]), value=np.array([-3], ml_dtypes.int4))
        assert four.dtype == ml_dtypes.int4
        assert four.astype(int).tolist() == [-3, -3]

    def test_rank_0_and_zero_size(self):
        assert constant_of_shape(np.array([], np.int64)).shape == ()
        assert constant_of_shape(np.array([0, 4])).shape == (0, 4)

    def test_out(self):
        out = np.empty((2,), np.int32)
        value = np.array([7], np.int32)
        assert constant_of_shape(np.array([2]), value=value, out=out) is out
        assert out.tolist() == [7, 7]


@pytest.mark.parametrize("value", [np.array([1]), [np.array([1]), np.array([2.0])], None])
def test_identity_is_the_value_itself(value):
    assert identity(value) is value
