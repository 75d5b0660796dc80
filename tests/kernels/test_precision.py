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
