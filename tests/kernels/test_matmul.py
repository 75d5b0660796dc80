import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.matmul import gemm, gemm_6, matmul
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, compute, find_kernel
from foldline.kernels.strips import TILE_WORK

FAST = find_kernel("", "MatMul", 13, ("fast",))
PLAIN = find_kernel("", "MatMul", 13, ("reference",))


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((4,), (4,))]
)
def test_grades_agree(dtype, shapes):
    a, b = (normal(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes))
    fast, plain = compute(FAST, (a, b)), compute(PLAIN, (a, b))
    assert type(fast) is type(plain) is np.ndarray
    assert fast.dtype == plain.dtype == dtype
    np.testing.assert_array_equal(fast.shape, np.matmul(a.astype(float), b.astype(float)).shape)
    np.testing.assert_allclose(
        fast.astype(float), plain.astype(float), rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-6
    )


def test_half_products_are_rounded_once():
    row = np.full((1, 4096), 1, np.float16)
    for entry in (FAST, PLAIN):
        assert compute(entry, (row, row.T)) == 4096  # float16 sums stick at 2048
    big = np.full((1, 2), 300, np.float16)
    assert np.isposinf(compute(FAST, (big, big.T)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("largest", [5, 1 << 30])
def test_integers_are_exact_and_wrap(dtype, largest):
    rng = np.random.default_rng(0)
    low = 0 if np.dtype(dtype).kind == "u" else -largest
    a, b = rng.integers(low, largest, (3, 9), dtype), rng.integers(low, largest, (9, 4), dtype)
    exact = np.asarray(a.astype(object) @ b.astype(object))
    bits = np.iinfo(dtype).bits
    wrapped = (exact % (1 << bits)).astype(np.uint64).astype(dtype)
    for entry in (FAST, PLAIN):
        result = compute(entry, (a, b))
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, wrapped)


def test_empty_integers():
    for dtype in (np.int32, np.float32):
        result = compute(FAST, (np.empty((2, 0), dtype), np.empty((0, 3), dtype)))
        np.testing.assert_array_equal(result, np.zeros((2, 3), dtype))


def test_nan_and_infinity_go_through():
    a = np.float32([[np.inf, 0], [np.nan, 1]])
    result = compute(FAST, (a, np.float32([[1, 0], [0, 1]])))
    np.testing.assert_array_equal(result, [[np.inf, np.nan], [np.nan, np.nan]])


def test_stacks_are_tiled_over_the_stack():
    shape = (6, 256, 256)
    assert 6 * 256**3 > 2 * TILE_WORK
    a, b = normal(*shape), normal(1, 256, 256, seed=1)
    out = np.empty(shape, np.float32)
    with use_threads(2):
        assert compute(FAST, (a, b), out=out) is out
    np.testing.assert_allclose(out, np.matmul(a, b), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_gemm(dtype, is_constant, alpha):
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-5, 5, s).astype(dtype) for s in ((20, 4), (3, 4), (3,)))
    operands = [
        Operand(v.shape, v.dtype, v if is_constant and v is not a else None) for v in (a, b, c)
    ]
    run = gemm(*operands, alpha=alpha, beta=3.0, transB=1)
    run = getattr(run, "run", run)
    out = np.empty((20, 3), dtype)
    assert run(a, b, c, out=out) is out
    np.testing.assert_array_equal(out, alpha * (a.astype(int) @ b.T.astype(int)) + 3 * c)


def test_gemm_6_broadcasts_only_when_told():
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    with pytest.raises(ValueError, match=r"C has shape \(4,\), not \(2, 4\)"):
        gemm_6(a, b, np.ones(4, np.float32))
    result = gemm_6(a, b, np.arange(4, dtype=np.float32), broadcast=1)
    np.testing.assert_array_equal(result, [[3, 4, 5, 6]] * 2)


def test_gemm_6_transposes_and_scales():
    a, b = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[1, 0], [0, 1], [1, 1], [2, 0]])
    c = np.ones((3, 4), np.float32)
    result = gemm_6(a, b, c, transA=1, transB=1, alpha=2.0, beta=-1.0)
    np.testing.assert_array_equal(result, 2 * (a.T @ b.T) - 1)


def test_a_matrix_times_a_view():
    a, b = normal(4, 3).T, normal(8, 10)[::2, ::2]
    step = matmul(Operand(a.shape, a.dtype), Operand(b.shape, b.dtype))
    np.testing.assert_allclose(step(a, b), a @ b.copy(), rtol=1e-6)


@pytest.mark.parametrize("columns", [16, 17, 37, 1000])
@pytest.mark.parametrize("op_type", ["MatMul", "Gemm"])
def test_equal_columns_give_equal_results_of_a_single_row(op_type, columns):
    row = (np.random.default_rng(0).random((1, 1024)) * 1e3).astype(np.float32)
    column = np.random.default_rng(1).standard_normal((1024, 1)).astype(np.float32)
    matrix = np.ascontiguousarray(np.broadcast_to(column, (1024, columns)))
    result = compute(find_kernel("", op_type, 13), (row, matrix))
    assert np.unique(result).size == 1
    np.testing.assert_allclose(result[0, 0], (row.astype(float) @ column)[0, 0], rtol=1e-5)
