import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.precision import rounded, widened, widening, widening_maker, working_dtype
from foldline.kernels.registry import Operand, Step

NARROW = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_are_widened(dtype):
    assert working_dtype(np.dtype(dtype)) == np.float32
    assert widened(np.ones(2, dtype)).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_other_dtypes_stay(dtype):
    x = np.ones(2, dtype)
    assert working_dtype(x.dtype) == dtype
    assert widened(x) is x


@pytest.mark.parametrize("dtype", [*NARROW, np.float32, np.float64])
def test_a_stash_type_of_double_widens_all_floats(dtype):
    assert working_dtype(np.dtype(dtype), 11) == np.float64
    assert widened(np.ones(2, dtype), 11).dtype == np.float64
    assert widened(np.ones(2, np.int64), 11).dtype == np.int64


def test_the_decorators_follow_the_stash_type():
    @widening
    def plain(x, *, stash_type=1):
        assert x.dtype == (np.float64 if stash_type == 11 else np.float32)
        return x + x.dtype.type(2**-30) - x

    @widening_maker
    def make(x, *, stash_type=1):
        assert x.dtype == x.value.dtype
        return lambda a: plain(a, stash_type=stash_type)

    x = np.ones(1, np.float32)
    operand = Operand(x.shape, x.dtype, x)
    assert plain(x) == 0 == plain(x, stash_type=16) == make(operand)(x)
    double = plain(x, stash_type=11)
    assert double.dtype == np.float32
    assert double == 2**-30 == make(operand, stash_type=11).run(x)


def test_rounded_writes_to_out():
    out = np.empty(2, np.float16)
    assert rounded(np.float32([1.0001, 2]), out.dtype, out) is out
    assert out.tolist() == [1, 2]
    x = np.ones(2)
    assert rounded(x, x.dtype) is x


@pytest.mark.parametrize("dtype", NARROW[:2])
def test_a_plain_kernel_rounds_once(dtype):
    @widening
    def steps(x, y, *, out=None):
        assert out is None
        assert x.dtype == np.float32
        return x + y - y, np.float32(3)

    x, y = np.asarray([1], dtype), np.asarray([4096], dtype)
    out = np.empty(1, dtype)
    result, rest = steps(x, y, out=out)
    assert result is out
    assert result == 1  # 4097 is neither a float16 nor a bfloat16
    assert rest.dtype == np.float32


def test_a_maker_widens_constants_once():
    seen = []

    @widening_maker
    def make(x, w):
        assert x.dtype == w.dtype == w.value.dtype == np.float32

        def run(a, b, *, scratch):
            seen.append(b)
            scratch[:] = 1
            return a * b

        return Step(run, 64)

    weight = np.float16([2, 3])
    step = make(Operand((2,), weight.dtype), Operand((2,), weight.dtype, weight))
    assert step.scratch_bytes == 64
    out = np.empty(2, np.float16)
    for _ in range(2):
        result = step.run(np.float16([5, 7]), weight, scratch=np.empty(64, np.uint8), out=out)
        assert result is out
        assert out.tolist() == [10, 21]
    assert seen[0] is seen[1]
