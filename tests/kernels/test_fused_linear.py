"""The fused Linear against what it stands for, and products that hang on shapes alone."""

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.epilogue import PARAMETERS, activation_of
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import GRADES, Operand, compute, find_kernel, run_once
from foldline.kernels.tiled_products import flat_product

SAMPLE = {
    "Clip": (-0.5, 0.75),
    "Gelu": (0.0,),
    "HardSigmoid": (0.3, 0.4),
    "LeakyRelu": (0.2,),
    "Swish": (1.0,),
}


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def kernel(op_type, grade, domain=""):
    return find_kernel(domain, op_type, 28 if not domain else 1, [grade])


def run(op_type, grade, inputs, domain="", constant=(), **attributes):
    entry = kernel(op_type, grade, domain)
    if not entry.is_maker:
        return np.asarray(entry.function(*inputs, **attributes))
    operands = [
        Operand(x.shape, x.dtype, x if i in constant else None) for i, x in enumerate(inputs)
    ]
    return run_once(entry.function(*operands, **attributes), inputs)


def one_by_one(mode, a, b, c, activation, params):
    grade = GRADES[mode][0]
    y = run("MatMul", grade, (a, b))
    if c is not None:
        y = run("Add", "exact" if mode == "exact" else "reference", (y, c))
    if activation:
        attributes = dict(zip(PARAMETERS[activation], params, strict=True))
        bounds = ()
        if activation == "Clip":
            bounds, attributes = [np.asarray(p, y.dtype) for p in params], {}
        if activation == "Gelu":
            attributes = {"approximate": "tanh" if params[0] else "none"}
        last = find_kernel("", activation, 28, GRADES[mode])
        y = last.function(y, *bounds, **attributes)
    return y


SIZES = [(1, 8, 6), (5, 8, 6), (5, 0, 6), (0, 8, 6), (5, 8, 1), (300, 300, 700), (900, 300, 200)]


@pytest.mark.parametrize("activation", ["", *PARAMETERS])
@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("size", SIZES)
def test_the_bits_are_those_of_the_operators_one_by_one(activation, mode, size):
    m, k, n = size
    if mode == "exact" and m * k * n > 1 << 25:
        size = m, k, n = 70, 300, 130
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(n, seed=2)
    if m > 2 and k:
        a[1, 0], a[2, 0] = np.inf, np.nan
    params = SAMPLE.get(activation, ())
    expected = one_by_one(mode, a, b, c, activation, params)
    for constant in ((1, 2), (1,), ()):
        for threads in (1, 3):
            with use_threads(threads):
                found = run(
                    "Linear",
                    GRADES[mode][0],
                    (a, b, c),
                    "foldline",
                    constant,
                    activation=activation,
                    activation_params=params,
                )
            assert found.dtype == np.float32
            np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("constant", [(1,), ()])
@pytest.mark.parametrize("c", [(6,), (1, 1, 6), (1,), (), None])
def test_transposed_weights_and_biases(transposed, constant, c):
    a, b = normal(2, 3, 8), normal(8, 6, seed=1)
    bias = None if c is None else normal(*c, seed=2)
    given = np.ascontiguousarray(b.T) if transposed else b
    inputs = (a, given) if bias is None else (a, given, bias)
    for grade in ("fast", "reference", "exact"):
        mode = "exact" if grade == "exact" else "fast"
        found = run("Linear", grade, inputs, "foldline", constant, transB=transposed)
        np.testing.assert_array_equal(bits(found), bits(one_by_one(mode, a, b, bias, "", ())))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("grade", ["fast", "reference", "exact"])
def test_other_floats_are_rounded_after_each_operator(dtype, grade):
    a, b, c = (normal(*s, dtype=dtype) for s in ((3, 8), (8, 6), (6,)))
    found = run("Linear", grade, (a, b, c), "foldline", activation="Tanh")
    mode = "exact" if grade == "exact" else "fast"
    expected = one_by_one(mode, a, b, c, "Tanh", ())
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_array_equal(bits(found), bits(expected))


def test_a_destination_is_used():
    entry = kernel("Linear", "fast", "foldline")
    a, b, out = normal(2, 3, 8), normal(8, 6), np.empty((2, 3, 6), np.float32)
    made = entry.function(Operand(a.shape, a.dtype), Operand(b.shape, b.dtype), activation="Relu")
    assert made(a, b, out=out) is out
    assert (out >= 0).all()


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match="unknown activation 'Softmax'"):
        activation_of("Softmax", (), np.dtype(np.float32))


@pytest.mark.parametrize("activation", PARAMETERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_give_an_element_the_same_bits_wherever_it_stands(activation, dtype):
    """What tiles rely on; a property of NumPy's loops on this machine."""
    x = normal(67, 131, dtype=dtype) * 8
    x[3, 5:11] = np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38
    apply = activation_of(activation, SAMPLE.get(activation, ()), np.dtype(dtype))
    whole = apply.run(x, out=np.empty_like(x))
    parts = np.empty_like(x)
    for row in range(0, 67, 13):
        for column in (0, 1, 18, 50, 51, 120):
            stop = min(column + 69, 131)
            part = np.ascontiguousarray(x[row : row + 13, column:stop])
            parts[row : row + 13, column:stop] = apply.run(part, out=np.empty_like(part))
    np.testing.assert_array_equal(bits(parts), bits(whole))
    strided = np.empty((67, 140), dtype)[:, 4:135]
    apply.run(x, out=strided)
    np.testing.assert_array_equal(bits(strided), bits(whole))
    if apply.inplace:
        copy = x.copy()
        apply.run(copy, out=copy)
        np.testing.assert_array_equal(bits(copy), bits(whole))


# The order in which operands lie in memory


LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "padded": lambda x: np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 3)])[..., : x.shape[-1]],
    "skipping": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "upside down": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
}
BY_SHAPE = [
    ((1, 64), (64, 40)),
    ((2, 64), (64, 16)),
    ((64, 65), (65, 1)),
    ((3, 2), (2, 1)),
    ((128, 384), (384, 100)),
    ((700, 300), (300, 300)),
    ((4, 32, 16), (4, 16, 32)),
    ((4, 1, 16), (4, 16, 32)),
    ((6, 300, 300), (6, 300, 300)),
    ((2, 3, 64), (64, 40)),
]


@pytest.mark.parametrize("shapes", BY_SHAPE)
def test_matmul_has_the_same_bits_however_its_operands_lie_in_memory(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    expected = run("MatMul", "fast", (a, b))
    for of_a in LAYOUTS.values():
        for of_b in LAYOUTS.values():
            found = run("MatMul", "fast", (of_a(a), of_b(b)))
            np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("shapes", [s for s in BY_SHAPE if len(s[0]) == len(s[1]) == 2])
def test_gemm_has_the_bits_of_matmul_whichever_operand_it_transposes(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    expected = run("MatMul", "fast", (a, b))
    for left in (0, 1):
        for right in (0, 1):
            inputs = (a.T.copy() if left else a, b.T.copy() if right else b)
            for constant in ((), (1,)):
                found = run("Gemm", "fast", inputs, "", constant, transA=left, transB=right)
                np.testing.assert_array_equal(bits(found), bits(expected))


def test_vectors_have_the_same_bits_however_they_lie_in_memory():
    a, b = normal(130), normal(130, 40, seed=1)
    expected = run("MatMul", "fast", (a, b))
    found = run("MatMul", "fast", (np.repeat(a, 2)[::2], np.asfortranarray(b)))
    np.testing.assert_array_equal(bits(found), bits(expected))


def test_fused_activations_are_the_kernels_of_onnx():
    x = normal(40, 30) * 4
    for name in ("Gelu", "HardSwish", "Swish"):
        fused = find_kernel("foldline", name, 1)
        params = SAMPLE.get(name, ())
        activation = activation_of(name, params, x.dtype)
        found = activation.run(x, out=np.empty_like(x))
        np.testing.assert_array_equal(bits(compute(fused, (x,))), bits(found))


def test_matmul_gemm_and_linear_are_cut_alike(monkeypatch):
    """Cutting a product may change its bits, on this machine or another one."""
    asked = []

    def recorded(m, k, n, *others):
        asked.append((m, k, n))
        return flat_product(m, k, n, *others)

    monkeypatch.setattr("foldline.kernels.matmul.flat_product", recorded)
    monkeypatch.setattr("foldline.kernels.fused_linear.flat_product", recorded)
    a, b = normal(7, 5), normal(5, 3)
    run("MatMul", "fast", (a, b))
    run("MatMul", "fast", (a[None], b))
    run("Gemm", "fast", (a, b.T.copy()), transB=1)
    run("Linear", "fast", (a, b), "foldline")
    run("Linear", "fast", (a[None], b.T.copy()), "foldline", transB=1)
    assert asked == [(7, 5, 3)] * 5


@pytest.mark.parametrize(
    "size", [(5, 8, 6), (1, 8, 33), (33, 700, 200), (300, 300, 700), (0, 8, 6)]
)
@pytest.mark.parametrize("activation", [None, "Relu", "Gelu"])
def test_bound_steps_give_the_same_bits(size, activation):
    m, k, n = size
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(n, seed=2)
    operands = [Operand(a.shape, a.dtype), *(Operand(x.shape, x.dtype, x) for x in (b, c))]
    params = [0.0] if activation == "Gelu" else []
    step = kernel("Linear", "fast", "foldline").function(
        *operands, activation=activation, activation_params=params
    )
    wide = np.empty((m, 2 * n), np.float32)
    # A destination with gaps is no matrix of its own.
    for out in (np.empty((m, n), np.float32), wide[:, :n]):
        bound = step.bind(a, b, c, out=out)
        for _ in range(2):
            bound()
            np.testing.assert_array_equal(bits(out), bits(step.run(a, b, c)))
            a += np.float32(0.25)
