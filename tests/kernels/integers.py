"""Products of integers that go on to floats: how they and their parts are run in tests."""

import numpy as np

from foldline.kernels.registry import GRADES, Operand, compute, find_kernel, run_once

DOMAIN = "foldline"
MODES = ("fast", "exact")


def codes(shape, dtype, seed=0):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def floats(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bits(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


def run(op_type, arrays, mode="fast", constant=(), out=None, domain=DOMAIN, **attributes):
    entry = find_kernel(domain, op_type, 22 if not domain else 1, GRADES[mode])
    with np.errstate(all="ignore"):
        if not entry.is_maker:
            return entry.function(*arrays, **attributes)
        operands = [
            None if x is None else Operand(x.shape, x.dtype, x if place in constant else None)
            for place, x in enumerate(arrays)
        ]
        keywords = {} if out is None else {"out": out}
        return run_once(entry.function(*operands, **attributes), arrays, **keywords)


def parts(total, scale, bias, mode, bias_first=0):
    """Cast, Mul and Add by their own kernels."""
    y = compute(find_kernel("", "Cast", 13, GRADES[mode]), [total], to=1)
    y = compute(find_kernel("", "Mul", 14, GRADES[mode]), [y, scale])
    terms = [bias, y] if bias_first else [y, bias]
    return y if bias is None else compute(find_kernel("", "Add", 14, GRADES[mode]), terms)
