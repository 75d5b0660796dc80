"""Plain kernels that take scratch: memory for one array like the result."""

import numpy as np
import pytest

from foldline.kernels.registry import Kernel, all_kernels

KERNELS = [entry for entry in all_kernels() if not entry.is_maker and "scratch" in entry.reserved]
NAMES = [f"{entry.domain}.{entry.op_type} {entry.since}" for entry in KERNELS]
OTHERS = {"PRelu": ([[1.5], [-0.5]],)}
ATTRIBUTES = {"LRN": {"size": 3}}

each_kernel = pytest.mark.parametrize("entry", KERNELS, ids=NAMES)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])


def test_these_take_scratch():
    taking = {entry.op_type for entry in KERNELS}
    assert {"Erf", "Gelu", "PRelu", "LRN", "Elu", "Mish", "HardSwish", "Softplus"} <= taking


@each_kernel
@each_dtype
@pytest.mark.parametrize("has_out", [False, True])
def test_scratch_changes_no_bit(entry: Kernel, dtype, has_out):
    x = (4 * np.random.default_rng(0).standard_normal((3, 2, 5, 7))).astype(dtype)
    x.flat[:6] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-4]
    before = x.tobytes()
    inputs = [x, *(np.array(y, dtype).reshape(2, 1, 1) for y in OTHERS.get(entry.op_type, ()))]
    keywords = ATTRIBUTES.get(entry.op_type, {})
    with np.errstate(all="ignore"):
        expected = entry.function(*inputs, **keywords)
        scratch = np.full(x.shape, np.nan, dtype)
        out = np.full(x.shape, np.nan, dtype) if has_out else None
        actual = entry.function(*inputs, **keywords, out=out, scratch=scratch)
    assert actual.tobytes() == expected.tobytes()
    assert actual is out or not has_out
    assert not np.shares_memory(actual, scratch)
    assert x.tobytes() == before


@each_kernel
def test_the_result_may_take_the_place_of_an_input_it_names(entry: Kernel):
    if not entry.inplace:
        return
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    expected = entry.function(x.copy())
    y = x.copy()
    assert entry.function(y, out=y, scratch=np.empty_like(x)) is y
    assert y.tobytes() == expected.tobytes()
