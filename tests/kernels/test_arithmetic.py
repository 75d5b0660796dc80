import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.arithmetic import clip_attributes, divide, mean, modulo, power
from foldline.kernels.registry import compute, find_kernel

SIGNED = [np.int8, np.int16, np.int32, np.int64]
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def run(op_type, version, *inputs, **attributes):
    with np.errstate(all="ignore"):
        return compute(find_kernel("", op_type, version), inputs, **attributes)


def same(actual, expected):
    np.testing.assert_array_equal(actual.astype(float), np.array(expected, float))


class TestDiv:
    @pytest.mark.parametrize("dtype", SIGNED)
    def test_integers_truncate_toward_zero(self, dtype):
        a, b = np.array([7, -7, 7, -7, 6, -6, 0], dtype), np.array([2, 2, -2, -2, 3, 3, -5], dtype)
        result = divide(a, b)
        assert result.dtype == dtype
        assert result.tolist() == [3, -3, -3, 3, 2, -2, 0]

    @pytest.mark.parametrize("dtype", SIGNED)
    def test_least_integer_by_minus_one_wraps_and_by_zero_is_zero(self, dtype):
        least = np.iinfo(dtype).min
        with np.errstate(all="ignore"):
            result = divide(np.array([least, 5, -5], dtype), np.array([-1, 0, 0], dtype))
        assert result.tolist() == [least, 0, 0]

    def test_int64_is_exact_beyond_float64(self):
        a = np.array([2**63 - 1, -(2**63)], np.int64)
        assert divide(a, np.array(3)).tolist() == [(2**63 - 1) // 3, -((2**63) // 3)]
        assert divide(np.array([2**64 - 1], np.uint64), np.array([2], np.uint64)) == 2**63 - 1

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_floats_follow_ieee(self, dtype):
        result = run("Div", 14, np.array([1, -1, 0, 3], dtype), np.array([0, 0, 0, 2], dtype))
        assert result.dtype == dtype
        same(result, [np.inf, -np.inf, np.nan, 1.5])


class TestMod:
    def test_integer_sign_rules(self):
        a = np.array([-4, 7, 5, 4, -7, 8])
        b = np.array([2, -3, 8, -2, 3, 5])
        assert modulo(a, b).tolist() == [0, -2, 5, 0, 2, 3]
        assert modulo(a, b, fmod=1).tolist() == [0, 1, 5, 0, -1, 3]

    @pytest.mark.parametrize("fmod", [0, 1])
    def test_least_integer_by_minus_one_and_zero_divisor(self, fmod):
        with np.errstate(all="ignore"):
            a = np.array([-128, 3], np.int8)
            assert modulo(a, np.array([-1, 0], np.int8), fmod=fmod).tolist() == [0, 0]

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_special_values_of_version_28(self, dtype):
        inf, nan = np.inf, np.nan
        x = np.array([-0.0, 0.0, inf, 3, 3, -3, nan, 3], dtype)
        y = np.array([2, -2, 3, 0, inf, inf, 1, nan], dtype)
        result = run("Mod", 28, x, y, fmod=0)
        assert result.dtype == dtype
        same(result, [0, 0, nan, nan, 3, inf, nan, nan])
        assert np.signbit(result[:2]).tolist() == [False, True]
        same(run("Mod", 28, x, y, fmod=1), [0, 0, nan, nan, 3, -3, nan, nan])


class TestPow:
    @pytest.mark.parametrize("exponent", [np.int32, np.int64, np.uint8, np.float32, np.float64])
    @pytest.mark.parametrize("base", [np.int32, np.int64, *FLOATS])
    def test_result_has_the_type_of_the_base(self, base, exponent):
        result = power(np.array([1, 2, 3], base), np.array([2, 3, 0], exponent))
        assert result.dtype == base
        same(result, [1, 8, 1])

    def test_integer_powers_are_exact_and_wrap(self):
        assert power(np.array([3]), np.array([39])).tolist() == [3**39]
        assert power(np.array([3]), np.array([39.0], np.float32)).tolist() == [3**39]
        assert power(np.array([3], np.int32), np.array([21])).tolist() == [3**21 - 2 * 2**32]

    def test_negative_powers_of_integers_truncate(self):
        x = np.array([2, 3, 1, -1, -1, -2, 0])
        y = np.array([-1, -2, -5, -3, -4, -1, 2])
        assert power(x, y).tolist() == [0, 0, 1, -1, 1, 0, 0]

    def test_fractional_powers_of_integers_truncate(self):
        assert power(np.array([4, 10]), np.array([0.5, 0.5])).tolist() == [2, 3]

    def test_float64_exponent_is_not_rounded_to_float32(self):
        result = power(np.array([2], np.float32), np.array([100 + 1e-6]))
        assert result == np.float32(2 ** (100 + 1e-6))

    @pytest.mark.parametrize("exponent", [2, 3])
    def test_constant_exponent_agrees_with_the_general_loop(self, exponent):
        x = np.array([-0.0, 0, -np.inf, np.inf, np.nan, 1e30, -1e-30, -1.7, 3], np.float32)
        with np.errstate(all="ignore"):
            special = power(x, np.array(exponent, np.float32))
            general = power(x, np.full(x.shape, exponent, np.float32))
        np.testing.assert_allclose(special, general, rtol=2e-7)
        assert (np.signbit(special) == np.signbit(general))[~np.isnan(x)].all()

    def test_out_may_be_the_exponent(self):
        y = np.array([2], np.float32)
        assert power(np.array([5], np.float32), y, out=y) is y
        assert y.tolist() == [25]


class TestSignAndRounding:
    @pytest.mark.parametrize("dtype", SIGNED)
    def test_least_integer_wraps(self, dtype):
        least = np.array([np.iinfo(dtype).min], dtype)
        assert run("Abs", 13, least).tolist() == least.tolist()
        assert run("Neg", 13, least).tolist() == least.tolist()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_sign_and_round_of_special_values(self, dtype):
        x = np.array([-np.inf, -2.5, -0.0, 0.5, 1.5, 2.5, np.nan], dtype)
        same(run("Sign", 13, x), [-1, -1, 0, 1, 1, 1, np.nan])
        rounded = run("Round", 22, x)
        same(rounded, [-np.inf, -2, 0, 0, 2, 2, np.nan])
        assert np.signbit(rounded[2])

    def test_sqrt_and_reciprocal(self):
        x = np.array([4, -1, -0.0, np.inf], np.float32)
        same(run("Sqrt", 13, x), [2, np.nan, 0, np.inf])
        same(run("Reciprocal", 13, x), [0.25, -1, -np.inf, 0])


class TestMaxMin:
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("op_type", ["Max", "Min"])
    def test_nan_wins_whichever_operand_has_it(self, op_type, dtype):
        x = np.array([np.nan, 1, 2], dtype)
        assert np.isnan(run(op_type, 13, x, np.array(0, dtype))).tolist() == [True, False, False]
        assert np.isnan(run(op_type, 13, np.array(0, dtype), x)).tolist() == [True, False, False]
        assert np.isnan(run(op_type, 13, x, np.array([np.nan], dtype))).all()

    @pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, *FLOATS])
    def test_values_with_vectors_scalars_and_several_operands(self, dtype):
        a, b, c = (np.array(v, dtype) for v in ([[1], [9]], [2, 5], 3))
        same(run("Max", 13, a, b, c), [[3, 5], [9, 9]])
        same(run("Min", 13, a, b, c), [[1, 1], [2, 3]])
        same(run("Max", 13, b, c), [3, 5])
        same(run("Min", 13, b, c), [2, 3])

    def test_infinities_pass_a_scalar_bound(self):
        x = np.array([-np.inf, np.inf], np.float32)
        same(run("Max", 13, x, np.array(0, np.float32)), [0, np.inf])
        same(run("Min", 13, x, np.array(0, np.float32)), [-np.inf, 0])

    def test_one_operand_is_copied(self):
        x = np.array([1.0], np.float32)
        assert not np.may_share_memory(run("Max", 13, x), x)


class TestSumAndMean:
    def test_broadcast_from_left_to_right(self):
        x, y, z = (np.array(v, np.float32) for v in ([[1e8], [1]], [1, 2], -1e8))
        assert run("Sum", 13, x, y, z).tolist() == [[0, 0], [-1e8, -1e8]]

    @pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 11), (ml_dtypes.bfloat16, 8)])
    def test_half_types_are_rounded_once(self, dtype, bits):
        large, one = np.array([2**bits], dtype), np.array([1], dtype)
        total = run("Sum", 13, large, one, one)
        assert total.dtype == dtype
        same(total, [2**bits + 2])  # rounding after each step would lose both ones

    def test_the_sum_of_a_mean_does_not_overflow_float16(self):
        same(mean(np.array([6e4], np.float16), np.array([6e4], np.float16)), [6e4])


class TestClip:
    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, *FLOATS])
    def test_bounds(self, dtype):
        x = np.array([0, 1, 5, 9], dtype)
        low, high = np.array(1, dtype), np.array(5, dtype)
        same(run("Clip", 13, x, low, high), [1, 1, 5, 5])
        same(run("Clip", 13, x, low), [1, 1, 5, 9])
        same(run("Clip", 13, x, None, high), [0, 1, 5, 5])
        same(run("Clip", 13, x), [0, 1, 5, 9])
        same(run("Clip", 13, x, high, low), [1, 1, 1, 1])  # the upper bound wins
        same(run("Clip", 13, np.array(9, dtype), low, high), 5)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_nan_stays_and_infinity_passes_an_absent_bound(self, dtype):
        x = np.array([np.nan, np.inf, -np.inf], dtype)
        same(run("Clip", 13, x, np.array(0, dtype)), [np.nan, np.inf, 0])

    def test_vector_bounds_do_not_change_the_rank(self):
        assert run("Clip", 13, np.array(3.0), np.array([4.0])).shape == ()

    def test_attributes(self):
        x = np.array([-1, 0.5, np.inf], np.float32)
        same(clip_attributes(x, min=0.0), [0, 0.5, np.inf])
        same(clip_attributes(x, min=0.0, max=3.4028234663852886e38), [0, 0.5, np.finfo("f").max])
        same(clip_attributes(x.astype(np.float16), max=3.4028234663852886e38), x)


class TestBeforeOpset7:
    def test_axis_places_the_second_operand(self):
        a = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
        b = np.array([10, 20], np.float32)
        result = run("Add", 6, a, b, axis=1, broadcast=1)
        assert result.tolist() == [[[10, 11, 12], [23, 24, 25]]]
        legacy = run("Mul", 1, a, b, axis=1, broadcast=1, consumed_inputs=(0, 0))
        assert legacy.tolist() == [[[0, 10, 20], [60, 80, 100]]]

    def test_integer_division_truncates_too(self):
        result = run("Div", 6, np.array([-7, 7]), np.array([2]), broadcast=1)
        assert result.tolist() == [-3, 3]


def test_integers_wrap():
    assert run("Add", 14, np.array([127], np.int8), np.array([1], np.int8)).tolist() == [-128]
    assert run("Mul", 14, np.array([2**62]), np.array([2])).tolist() == [-(2**63)]
    assert run("Sub", 14, np.array([0], np.uint64), np.array([1], np.uint64)) == 2**64 - 1
