"""Sizes of results: as expressions, and as ONNX Runtime has them for several input sizes."""

from __future__ import annotations

import pytest

from tests.stages.symbols.check import check_runs, dims_text

SIZES = ({"N": 2, "S": 7, "H": 9, "W": 16}, {"N": 1, "S": 1, "H": 8, "W": 5})

X = "(float[N,S,8] x)"
IMAGE = "(float[N,4,H,W] x)"
CASES: dict[str, tuple[str, str, str]] = {
    # name: inputs, nodes (the last value is y), sizes of y
    "broadcast": (
        "(float[N,S,8] x, float[S,1] z)",
        "y = Add(x, z)",
        "N, broadcast(S, S@z), 8",
    ),
    "broadcast one input": (
        "(float[N,S,8] x)",
        "z = Shape<start=1,end=2>(x) \n k = Constant"
        "<value_ints=[1]>() \n t = Concat<axis=0>(z, k) \n w = ConstantOfShape(t) \n y = Add(x, w)",
        "N, S, 8",
    ),
    "where": (X, "c = Cast<to=9>(x) \n y = Where(c, x, x)", "N, S, 8"),
    "matmul": ("(float[N,S,8] x, float[8,3] w)", "y = MatMul(x, w)", "N, S, 3"),
    "matmul vector": ("(float[N,S,8] x, float[8] w)", "y = MatMul(x, w)", "N, S"),
    "matmul batch": (X, "t = Transpose<perm=[0,2,1]>(x) \n y = MatMul(x, t)", "N, S, S"),
    "gemm": ("(float[N,8] x, float[3,8] w)", "y = Gemm<transB=1>(x, w)", "N, 3"),
    "einsum": (X, 'y = Einsum<equation="nsd,ntd->nst">(x, x)', "N, S, S"),
    "transpose": (X, "y = Transpose<perm=[1,2,0]>(x)", "S, 8, N"),
    "flatten": (X, "y = Flatten<axis=2>(x)", "N*S, 8"),
    "concat": (X, "y = Concat<axis=1>(x, x, x)", "N, 3*S, 8"),
    "unsqueeze": (X, "a = Constant<value_ints=[0,-1]>() \n y = Unsqueeze(x, a)", "1, N, S, 8, 1"),
    "squeeze": ("(float[N,1,S] x)", "a = Constant<value_ints=[1]>() \n y = Squeeze(x, a)", "N, S"),
    "reshape": (X, "t = Constant<value_ints=[0,-1,4]>() \n y = Reshape(x, t)", "N, 2*S, 4"),
    "reshape to elements": (
        X,
        "s = Shape<start=0,end=2>(x) \n k = Constant<value_ints=[2,-1]>() \n"
        "t = Concat<axis=0>(s, k) \n y = Reshape(x, t)",
        "N, S, 2, 4",
    ),
    "expand": (
        "(float[N,1,8] x)",
        "t = Constant<value_ints=[5,1,3,1]>() \n y = Expand(x, t)",
        "5, N, 3, 8",
    ),
    "tile": (X, "t = Constant<value_ints=[2,1,3]>() \n y = Tile(x, t)", "2*N, S, 24"),
    "slice to end": (
        X,
        "a = Constant<value_ints=[1]>() \n b = Constant<value_ints=[3]>() \n"
        "c = Constant<value_ints=[9223372036854775807]>() \n y = Slice(x, b, c, a)",
        "N, max(0, S - 3), 8",
    ),
    "slice from end": (
        X,
        "a = Constant<value_ints=[1]>() \n b = Constant<value_ints=[-2]>() \n"
        "c = Constant<value_ints=[2147483647]>() \n y = Slice(x, b, c, a)",
        "N, min(2, S), 8",
    ),
    "slice before end": (
        X,
        "a = Constant<value_ints=[1]>() \n b = Constant<value_ints=[1]>() \n"
        "c = Constant<value_ints=[-2]>() \n y = Slice(x, b, c, a)",
        "N, max(0, S - 3), 8",
    ),
    "slice with step": (
        X,
        "a = Constant<value_ints=[1]>() \n b = Constant<value_ints=[0]>() \n"
        "c = Constant<value_ints=[2147483647]>() \n d = Constant<value_ints=[3]>() \n"
        "y = Slice(x, b, c, a, d)",
        "N, floordiv(S + 2, 3), 8",
    ),
    "slice reversed": (
        X,
        "a = Constant<value_ints=[1]>() \n b = Constant<value_ints=[-1]>() \n"
        "c = Constant<value_ints=[-9223372036854775807]>() \n d = Constant<value_ints=[-2]>() \n"
        "y = Slice(x, b, c, a, d)",
        "N, floordiv(S + 1, 2), 8",
    ),
    "slice of a table": (
        X,
        "w = Constant<value_floats=[0.,1.,2.]>() \n e = Shape<start=1,end=2>(x) \n"
        "b = Constant<value_ints=[0]>() \n y = Slice(w, b, e)",
        "min(3, S)",
    ),
    "gather": (
        "(float[N,S,8] x, int64[W] i)",
        "y = Gather<axis=1>(x, i)",
        "N, W, 8",
    ),
    "pad": (
        IMAGE,
        "p = Constant<value_ints=[0,0,1,2,0,0,3,4]>() \n y = Pad(x, p)",
        "N, 4, H + 4, W + 6",
    ),
    "conv": (
        "(float[N,4,H,W] x, float[5,4,3,3] w)",
        "y = Conv<pads=[1,1,1,1], strides=[2,1]>(x, w)",
        "N, 5, floordiv(H + 1, 2), W",
    ),
    "conv same": (
        "(float[N,4,H,W] x, float[5,4,3,3] w)",
        'y = Conv<auto_pad="SAME_UPPER", strides=[2,3]>(x, w)',
        "N, 5, floordiv(H + 1, 2), floordiv(W + 2, 3)",
    ),
    "conv dilated": (
        "(float[N,4,H,W] x, float[5,4,3,3] w)",
        "y = Conv<dilations=[2,1]>(x, w)",
        "N, 5, H - 4, W - 2",
    ),
    "two convs": (
        "(float[N,4,H,W] x, float[4,4,3,3] w)",
        "a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) \n"
        "y = Conv<pads=[1,1,1,1], strides=[2,2]>(a, w)",
        "N, 4, floordiv(H + 3, 4), floordiv(W + 3, 4)",
    ),
    "conv transpose": (
        "(float[N,4,H,W] x, float[4,5,2,2] w)",
        "y = ConvTranspose<strides=[2,2], output_padding=[1,0]>(x, w)",
        "N, 5, 2*H + 1, 2*W",
    ),
    "max pool": (
        IMAGE,
        "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)",
        "N, 4, floordiv(H, 2), floordiv(W, 2)",
    ),
    "global pool": (IMAGE, "y = GlobalAveragePool(x)", "N, 4, 1, 1"),
    "resize by scales": (
        IMAGE,
        "k = Constant<value_floats=[1.,1.,2.,0.5]>() \n y = Resize(x, , k)",
        "N, 4, 2*H, floordiv(W, 2)",
    ),
    "resize to sizes": (
        IMAGE,
        "a = Shape<end=2>(x) \n b = Shape<start=2>(x) \n two = Constant<value_int=2>() \n"
        "c = Mul(b, two) \n t = Concat<axis=0>(a, c) \n y = Resize(x, , , t)",
        "N, 4, 2*H, 2*W",
    ),
    "reduce": (
        X,
        "a = Constant<value_ints=[-1]>() \n y = ReduceSum<keepdims=0>(x, a)",
        "N, S",
    ),
    "reduce all": (X, "y = ReduceMax(x)", "1, 1, 1"),
    "arg max": (X, "y = ArgMax<axis=1, keepdims=0>(x)", "N, 8"),
    "top k": (X, "k = Constant<value_ints=[3]>() \n y, i = TopK(x, k)", "N, S, 3"),
    "range": (
        X,
        "n = Size(x) \n a = Constant<value_int=1>() \n d = Constant<value_int=3>() \n"
        "y = Range(a, n, d)",
        "floordiv(8*N*S + 1, 3)",
    ),
    "split": (
        X,
        "p = Constant<value_ints=[3,5]>() \n a, y = Split<axis=2>(x, p)",
        "N, S, 5",
    ),
    "split in parts": (
        IMAGE,
        "a, b, y = Split<axis=3, num_outputs=3>(x)",
        "N, 4, H, -2*floordiv(W + 2, 3) + W",
    ),
    "depth to space": (IMAGE, "y = DepthToSpace<blocksize=2>(x)", "N, 1, 2*H, 2*W"),
    "space to depth": (
        "(float[N,1,4,8] x)",
        "y = SpaceToDepth<blocksize=2>(x)",
        "N, 4, 2, 4",
    ),
    "softmax": (X, "y = Softmax(x)", "N, S, 8"),
}


def _graph(inputs: str, nodes: str) -> str:
    return f"g {inputs} => (y) {{ {nodes} }}"


@pytest.mark.parametrize("name", CASES)
def test_sizes_as_text(name: str) -> None:
    inputs, nodes, expected = CASES[name]
    assert dims_text(_graph(inputs, nodes)) == [expected]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "@" not in case[2]])
def test_sizes_as_they_run(name: str, sizes: dict[str, int]) -> None:
    inputs, nodes, _ = CASES[name]
    check_runs(_graph(inputs, nodes), sizes)


ZERO_SAFE = (
    *("broadcast one input", "concat", "slice to end", "slice from end", "slice with step"),
    *("slice reversed", "slice of a table", "tile", "transpose", "where", "matmul batch"),
)


@pytest.mark.parametrize("name", ZERO_SAFE)
def test_sizes_without_elements(name: str) -> None:
    inputs, nodes, _ = CASES[name]
    check_runs(_graph(inputs, nodes), {"N": 2, "S": 0, "H": 4, "W": 4})


def test_recurrent() -> None:
    graph = """g (float[S,N,3] x, float[2,20,3] w, float[2,20,5] r) => (y, h, c)
    { y, h, c = LSTM<hidden_size=5, direction="bidirectional">(x, w, r) }"""
    assert dims_text(graph) == ["S, 2, N, 5", "2, N, 5", "2, N, 5"]
    check_runs(graph, SIZES[0])


def test_old_broadcasting_keeps_the_first_shape() -> None:
    graph = "g (float[N,S,8] x, float[S] z) => (y) { y = Add<axis=1, broadcast=1>(x, z) }"
    assert dims_text(graph, opset=6) == ["N, S, 8"]


def test_ceil_mode_is_left_open() -> None:
    found = dims_text(f"g {IMAGE} => (y) {{ y = MaxPool<kernel_shape=[2,2], ceil_mode=1>(x) }}")
    assert found[0].startswith("N, 4, d")


def test_data_dependent_sizes_are_symbols_of_their_own() -> None:
    found = dims_text("g (float[N] x) => (y, z) { y = NonZero(x) \n z = NonZero(x) }")
    assert found[0].split(", ")[0] == "1"
    assert found[0] != found[1]


def test_a_reshape_may_copy_where_a_size_is_0() -> None:
    # With S = 0 the target [S, -1, 4] copies N, so the first size is not always S.
    found = dims_text("""g (float[N,S,4] x) => (y) { s = Shape<start=1,end=2>(x)
        k = Constant<value_ints=[-1,4]>() \n t = Concat<axis=0>(s, k) \n y = Reshape(x, t) }""")
    first, second, last = found[0].split(", ")
    assert first.startswith("d")
    assert second.startswith("d")
    assert last == "4"


def test_a_reshape_copies_nothing_beside_numbers() -> None:
    graph = """g (float[N,S,4] x) => (y) { s = Size(x) \n k = Constant<value_ints=[4]>()
        c = Constant<value_ints=[1]>() \n r = Reshape(s, c) \n d = Div(r, k)
        t = Concat<axis=0>(d, k) \n y = Reshape(x, t) }"""
    assert dims_text(graph) == ["N*S, 4"]
    check_runs(graph, {"N": 2, "S": 3})
