"""Elements of shape vectors: as expressions, and as ONNX Runtime computes them."""

from __future__ import annotations

import pytest

from tests.stages.symbols.check import check_runs, elements_text

SIZES = ({"N": 2, "S": 7}, {"N": 1, "S": 1}, {"N": 3, "S": 0})

CASES: dict[str, tuple[str, str]] = {
    # name: nodes that make y of x: float[N, S, 8] and s, its shape; elements of y
    "shape": ("y = Identity(s)", "N, S, 8"),
    "part of a shape": ("y = Shape<start=-2>(x)", "S, 8"),
    "size": ("y = Size(x)", "8*N*S"),
    "gather scalar": ("i = Constant<value_int=-1>() \n y = Gather(s, i)", "8"),
    "gather vector": ("i = Constant<value_ints=[1,0,1]>() \n y = Gather(s, i)", "S, N, S"),
    "unsqueeze": (
        "i = Constant<value_int=1>() \n g = Gather(s, i) \n a = Constant<value_ints=[0]>() \n"
        "y = Unsqueeze(g, a)",
        "S",
    ),
    "concat": ("k = Constant<value_ints=[-1]>() \n y = Concat<axis=0>(s, k)", "N, S, 8, -1"),
    "slice": (
        "a = Constant<value_ints=[-1]>() \n b = Constant<value_ints=[-9223372036854775807]>() \n"
        "c = Constant<value_ints=[0]>() \n d = Constant<value_ints=[-1]>() \n"
        "y = Slice(s, a, b, c, d)",
        "8, S, N",
    ),
    "split": ("y, z = Split<num_outputs=2>(s)", "N, S"),
    "tile": ("k = Constant<value_ints=[2]>() \n y = Tile(s, k)", "N, S, 8, N, S, 8"),
    "transpose": (
        "k = Constant<value_ints=[3,1]>() \n r = Reshape(s, k) \n y = Transpose(r)",
        "N, S, 8",
    ),
    "expand": (
        "k = Constant<value_ints=[2,3]>() \n y = Expand(s, k)",
        "N, S, 8, N, S, 8",
    ),
    "add": ("y = Add(s, s)", "2*N, 2*S, 16"),
    "sub": ("k = Constant<value_int=3>() \n y = Sub(k, s)", "-N + 3, -S + 3, -5"),
    "mul by zero": (
        "k = Constant<value_ints=[0,1,2]>() \n y = Mul(s, k)",
        "0, S, 16",
    ),
    "div": ("k = Constant<value_int=2>() \n y = Div(s, k)", "floordiv(N, 2), floordiv(S, 2), 4"),
    "div of what may be negative": (
        "k = Constant<value_ints=[3,3,9]>() \n t = Sub(s, k) \n two = Constant<value_int=2>() \n"
        "y = Div(t, two)",
        "?, ?, 0",
    ),
    "mod": ("k = Constant<value_int=4>() \n y = Mod(s, k)", "mod(N, 4), mod(S, 4), 0"),
    "max": ("k = Constant<value_int=2>() \n y = Max(s, k)", "max(2, N), max(2, S), 8"),
    "min": ("k = Constant<value_int=2>() \n y = Min(s, k)", "min(2, N), min(2, S), 2"),
    "neg": ("y = Neg(s)", "-N, -S, -8"),
    "abs": ("n = Neg(s) \n y = Abs(n)", "N, S, 8"),
    "product": ("y = ReduceProd<keepdims=0>(s)", "8*N*S"),
    "sum": ("a = Constant<value_ints=[0]>() \n y = ReduceSum(s, a)", "N + S + 8"),
    "cast and back": ("i = Cast<to=6>(s) \n y = Cast<to=7>(i)", "N, S, 8"),
    "cast to bool": ("y = Cast<to=9>(s)", "?, ?, True"),
    "equal": ("k = Constant<value_int=-1>() \n y = Equal(s, k)", "False, False, False"),
    "equal to itself": ("y = Equal(s, s)", "True, True, True"),
    "equal to a number": ("k = Constant<value_int=8>() \n y = Equal(s, k)", "?, ?, True"),
    "less": ("k = Constant<value_int=0>() \n y = Less(s, k)", "False, False, False"),
    "at least": ("k = Constant<value_int=0>() \n y = GreaterOrEqual(s, k)", "True, True, True"),
    "greater": ("k = Constant<value_int=-1>() \n y = Greater(s, k)", "True, True, True"),
    "not": ("k = Constant<value_int=8>() \n e = Equal(s, k) \n y = Not(e)", "?, ?, False"),
    "and": (
        "k = Constant<value_int=8>() \n m = Constant<value_int=-1>() \n e = Equal(s, k) \n"
        "f = Equal(s, m) \n y = And(e, f)",
        "False, False, False",
    ),
    "or": (
        "k = Constant<value_int=8>() \n m = Constant<value_int=0>() \n e = Equal(s, k) \n"
        "f = GreaterOrEqual(s, m) \n y = Or(e, f)",
        "True, True, True",
    ),
    "where": (
        "m = Constant<value_int=-1>() \n e = Equal(s, m) \n one = Constant<value_int=1>() \n"
        "y = Where(e, one, s)",
        "N, S, 8",
    ),
    "where both agree": (
        "m = Constant<value_int=1>() \n e = Equal(s, m) \n y = Where(e, s, s)",
        "N, S, 8",
    ),
    "constant of shape": (
        "r = Shape(s) \n y = ConstantOfShape<value = int64[1] {1}>(r)",
        "1, 1, 1",
    ),
    "range": (
        "i = Constant<value_int=1>() \n a = Gather(s, i) \n k = Constant<value_int=3>() \n"
        "b = Add(a, k) \n y = Range(a, b, i)",
        "S, S + 1, S + 2",
    ),
}


def _graph(nodes: str) -> str:
    return "g (float[N,S,8] x) => (y) { s = Shape(x) \n " + nodes + " }"


@pytest.mark.parametrize("name", CASES)
def test_elements_as_text(name: str) -> None:
    nodes, expected = CASES[name]
    assert elements_text(_graph(nodes)) == [expected]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_elements_as_they_run(name: str, sizes: dict[str, int]) -> None:
    check_runs(_graph(CASES[name][0]), sizes)


def test_overflow_is_not_known() -> None:
    big = 2**62
    graph = f"""g (float[N] x) => (y, z) {{ a = Constant<value_ints=[{big}]>() \n y = Add(a, a)
    i = Constant<value_ints=[2147483647]>() \n j = Cast<to=6>(i) \n z = Add(j, j) }}"""
    assert elements_text(graph) == ["?", "?"]


def test_division_by_zero_is_not_known() -> None:
    graph = """g (float[N] x) => (y, z) { s = Shape(x) \n k = Constant<value_ints=[0]>()
    y = Div(s, k) \n z = Mod(s, k) }"""
    assert elements_text(graph) == ["?", "?"]


def test_large_tensors_are_not_followed() -> None:
    graph = """g (float[N] x) => (y) { s = Shape(x) \n k = Constant<value_ints=[1025]>()
    y = Expand(s, k) }"""
    assert elements_text(graph) == ["?"]


def test_elements_that_the_model_computes_are_not_known() -> None:
    graph = """g (float[N] x, int64[1] k) => (y) { s = Shape(x) \n y = Concat<axis=0>(s, k) }"""
    assert elements_text(graph) == ["N, ?"]
