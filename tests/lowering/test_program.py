from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np
import pytest

from foldline.kernels import registry
from foldline.kernels.parallel import use_threads
from foldline.lowering import Program, plans
from foldline.support.errors import InvalidArgumentError, KernelFailed
from tests.lowering import kernels as told
from tests.lowering import models
from tests.lowering.models import assert_same, every_kind, in_threads

MIXED = """g (float[N, 4] x, float[4, 4] w) => (float[N, 4] y, float[M] z)
<int64[1] minus = {-1}> {
    a = MatMul(x, w)
    b = Relu(a)
    s = Shape(b)
    t = Transpose<perm = [1, 0]>(b)
    r = Reshape<allowzero = 1>(t, s)
    c = Add(r, x)
    d = Mul(c, c)
    y = Sub(d, b)
    f = Reshape(y, minus)
    k = Exp(f)
    z = Neg(k)
}"""


def _floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _mixed(x: Any, w: Any) -> list[Any]:
    b = np.maximum(x @ w, np.float32(0))
    c = b.T.reshape(b.shape) + x
    y = c * c - b
    return [y, -np.exp(y.reshape(-1))]


def _plan_text(ready: Program) -> str:
    return ready.text(ready.plans()[-1].plan)


def test_all_kinds_of_run_agree() -> None:
    ready = models.program(MIXED)
    x, w = _floats(5, 4), _floats(4, 4, seed=1)
    for result in every_kind(ready, [x, w]):
        for actual, expected in zip(result, _mixed(x, w), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert len(ready.plans()) == 1


def test_the_plan_is_made_at_the_second_run_and_used_at_the_third() -> None:
    ready = models.program(MIXED)
    inputs = [_floats(2, 4), _floats(4, 4)]
    ready.run(inputs)
    assert not ready.plans()
    ready.run(inputs)
    (pool,) = ready.plans()
    assert not pool.idle
    ready.run(inputs)
    assert len(pool.idle) == 1


def test_eight_threads_equal_serial_results() -> None:
    shapes = (3, 17, 64)
    w = _floats(4, 4, seed=9)
    feeds = [[_floats(n, 4, seed=n), w] for n in shapes]
    expected = [models.program(MIXED).run(feed) for feed in feeds]
    ready = models.program(MIXED)

    def body(thread: int) -> None:
        for run in range(50):
            which = (run + thread) % 3
            assert_same(ready.run(feeds[which]), expected[which])

    in_threads(8, body)
    assert len(ready.plans()) == 3


def test_runs_reuse_the_arena_and_the_arena_reuses_memory() -> None:
    nodes = "".join(
        f"v{i + 1} = Concat<axis = 0>(v{i}, v{i})\nv{i + 2} = Neg(v{i + 1})\n"
        f"v{i + 3} = Slice(v{i + 2}, lo, hi)\n"
        for i in range(0, 30, 3)
    )
    graph = f"""g (float[256] v0) => (float[256] y) <int64[1] lo = {{0}}, int64[1] hi = {{256}}> {{
        {nodes} y = Abs(v30) }}"""
    ready = models.program(graph)
    x = _floats(256)
    every_kind(ready, [x])
    (pool,) = ready.plans()
    (first,) = pool.idle
    address = first.arena.ctypes.data
    results = ready.run([x])
    (second,) = pool.idle
    assert second.arena.ctypes.data == address
    assert 0 < pool.plan.arena_bytes < pool.plan.buffer_bytes
    np.testing.assert_array_equal(results[0], np.abs(x))


def test_steps_write_into_the_arena() -> None:
    ready = models.program(
        "g (float[8] x) => (float[8] y) {a = Add(x, x) b = Mul(a, a) y = Neg(b)}"
    )
    x = _floats(8)
    every_kind(ready, [x])
    (pool,) = ready.plans()
    (instance,) = pool.idle
    instance.arena[:] = 0
    ready.run([x])
    # The last value written over the others is b.
    expected = (x + x) * (x + x)
    np.testing.assert_array_equal(instance.arena[:32].view(np.float32), expected)


def test_a_chain_is_computed_in_place() -> None:
    ready = models.program(
        "g (float[8] x) => (float[8] y) {a = Add(x, x) b = Mul(a, x) c = Sub(x, b) y = Neg(c)}"
    )
    every_kind(ready, [_floats(8)])
    plan = ready.plans()[0].plan
    assert plan.arena_bytes == 64
    assert plan.buffer_bytes == 32


def test_what_is_read_later_is_not_overwritten() -> None:
    # a is read by the last node, its transposed view by the one before.
    ready = models.program("""g (float[3, 3] x) => (float[3, 3] y) {
        a = Add(x, x)
        t = Transpose(a)
        b = Neg(t)
        c = Mul(a, t)
        d = Add(c, a)
        y = Sub(d, b) }""")
    x = _floats(3, 3)
    a = x + x
    expected = [a * a.T + a + a.T]
    for result in every_kind(ready, [x]):
        assert_same(result, expected)


def test_in_place_never_reads_what_it_has_written() -> None:
    # Both operands of Mul share memory in different order: the result needs its own.
    ready = models.program(
        "g (float[3, 3] x) => (float[3, 3] y)"
        " {a = Add(x, x) t = Transpose(a) b = Mul(a, t) y = Neg(b)}"
    )
    x = _floats(3, 3)
    a = x + x
    for result in every_kind(ready, [x]):
        assert_same(result, [-(a * a.T)])
    # NumPy would see the overlap and copy, but not every kernel is one ufunc.
    assert ready.plans()[0].plan.arena_bytes == 2 * 64


def test_a_view_in_another_order_is_not_written_over() -> None:
    ready = models.program(
        "g (float[3, 3] x) => (float[3, 3] y)"
        " {a = Add(x, x) t = Transpose(a) b = Exp(t) y = Neg(b)}"
    )
    x = _floats(3, 3)
    for result in every_kind(ready, [x]):
        assert_same(result, [-np.exp((x + x).T)])
    assert ready.plans()[0].plan.arena_bytes == 2 * 64


def test_a_view_in_the_same_order_is() -> None:
    ready = models.program(
        "g (float[4] x) => (float[2, 2] y) <int64[2] s = {2, 2}>"
        " {a = Add(x, x) t = Reshape(a, s) b = Abs(t) c = Abs(b) y = Neg(c)}"
    )
    x = _floats(4)
    for result in every_kind(ready, [x]):
        assert_same(result, [-np.abs(x + x).reshape(2, 2)])
    assert ready.plans()[0].plan.arena_bytes == 64


def test_values_that_hang_on_shapes_are_known_and_cost_nothing() -> None:
    ready = models.program("""g (float[N, 4] x) => (float[4, N] y, int64[2] s) {
        s = Shape(x)
        zero = Constant<value_ints = [1, 0]>()
        r = Gather(s, zero)
        y = Reshape(x, r) }""")
    x = _floats(3, 4)
    results = every_kind(ready, [x])
    for y, s in results:
        np.testing.assert_array_equal(y, x.reshape(4, 3))
        np.testing.assert_array_equal(s, [3, 4])
    assert _plan_text(ready).count('places = #onnx.texts<"known">') == 2
    assert len(ready.plans()[0].plan.calls) == 1


def test_known_outputs_are_the_callers_own() -> None:
    ready = models.program("g (float[N] x) => (int64[1] s) {s = Shape(x)}")
    for result in every_kind(ready, [_floats(3)]):
        result[0][:] = 7
    np.testing.assert_array_equal(ready.run([_floats(3)])[0], [3])


def test_data_dependent_shapes_vary_under_one_plan() -> None:
    ready = models.program("""g (float[6] x) => (int64[1, K] i, float[L] y) {
        a = Relu(x)
        i = NonZero(a)
        t = Transpose(i)
        y = GatherND(x, t) }""")
    for seed in range(6):
        x = _floats(6, seed=seed)
        i, y = ready.run([x])
        np.testing.assert_array_equal(i, np.nonzero(x > 0))
        np.testing.assert_array_equal(y, x[x > 0])
    assert len(ready.plans()) == 1


def test_shapes_that_hang_on_values_vary_under_one_plan() -> None:
    ready = models.program(
        "g (float[6] x, int64[K] s) => (float[A, B] y) {r = Reshape(x, s) y = Neg(r)}"
    )
    x = _floats(6)
    for shape in ([2, 3], [3, 2], [1, 6], [6, 1]):
        (y,) = ready.run([x, np.array(shape)])
        np.testing.assert_array_equal(y, -x.reshape(shape))
    assert len(ready.plans()) == 1


def test_a_plan_that_does_not_hold_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel of an operator whose shape, so its class says, hangs on input shapes only.
    table = registry._TABLE  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delitem(table, ("", "Sin"), raising=False)

    @registry.kernel("Sin")
    def first_elements(x: Any) -> Any:
        return x[: int(x[0])].copy()

    try:
        ready = models.program("g (float[4] x) => (float[K] y) {a = Sin(x) y = Neg(a)}")
        for n in (2, 2, 2, 3, 1, 3):
            x = np.array([n, 5, 6, 7], np.float32)
            np.testing.assert_array_equal(ready.run([x])[0], -x[:n])
    finally:
        table.pop(("", "Sin"))
    assert not ready.plans()


def test_plans_are_bounded() -> None:
    ready = models.program("g (float[N] x) => (float[N] y) {y = Neg(x)}")
    for n in range(2 * plans.MOST_PLANS):
        every_kind(ready, [_floats(n)])
    assert len(ready.plans()) == plans.MOST_PLANS


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[4] x) => (float[4] x) {}",
        "g (float[4] x) => (float[4] y) {y = Identity(x)}",
        "g (float[4] x) => (float[4] y, float[4] z) {y = Neg(x) z = Identity(y)}",
        "g (float[4] x) => (float[2, 2] y, float[4] z) {z = Neg(x) y = Reshape(z, s)}",
        "g (float[4] x) => (float[4] w) <float[4] w = {1, 2, 3, 4}> {}",
        "g (float[4] x) => (float[4] y) {a = Neg(x) y = Identity(a)}",
        "g (float[4] x) => (float[4] y) <int64[1] s = {4}> {a = Neg(x) y = Expand(a, s)}",
        """g (float[4] x) => (float[4] y, bool d) <float[4] k = {1, 2, 3, 4}, bool f = {0}> {
            n = ReduceSum<keepdims = 0>(x)
            d = Equal(n, n)
            c = Not(d)
            y = If(c) <
                then_branch = t () => (float[4] p) { p = Neg(k) },
                else_branch = e () => (float[4] q) { q = Abs(k) }
            > }""",
        "g (float[4] x) => (float[4] y, float[4] z) {y = Neg(x) z = Neg(y)}",
    ],
)
def test_outputs_are_fresh_writable_and_alias_nothing(graph: str) -> None:
    if "2, 2" in graph:
        graph = graph.replace(") {", ") <int64[2] s = {2, 2}> {")
    ready = models.program(graph)
    x = _floats(4)
    before = x.copy()
    kept: list[Any] = [x]
    expected = [y.copy() for y in ready.run([x])]
    for _ in range(4):
        outputs = ready.run([x], [0, *range(len(ready.outputs))])
        assert_same(outputs[1:], expected)
        for output in outputs:
            assert output.flags.writeable
            assert not any(np.shares_memory(output, other) for other in kept)
            kept.append(output)
        for output in outputs:
            output[...] = 99
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("shape", ["", "3", "0, 2", "70, 70"])
@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("node", ["Add(x, t)", "Exp(t)", "Less(x, t)"])
def test_outputs_that_ufuncs_compute_are_arrays(node: str, dtype: str, shape: str) -> None:
    kind = "bool" if "Less" in node else dtype
    before = "Transpose" if "70" in shape else "Neg"
    ready = models.program(
        f"g ({dtype}[{shape}] x) => ({kind}[{shape}] y) {{ t = {before}(x) y = {node} }}"
    )
    x = np.asarray(_floats(*(int(size) for size in shape.split(",") if size)))
    given = x.astype({"float": np.float32, "float16": np.float16}[dtype])
    first, *others = every_kind(ready, [given])
    for (y,) in (first, *others):
        assert type(y) is np.ndarray
        assert y.flags.carray
        assert_same([y], first)


def test_a_view_of_a_fresh_result_leaves_without_a_copy() -> None:
    ready = models.program(
        "g (float[4] x) => (float[2, 2] y) <int64[2] s = {2, 2}> {a = Neg(x) y = Reshape(a, s)}"
    )
    for (y,) in every_kind(ready, [_floats(4)]):
        assert y.base is not None
        assert y.flags.writeable


def test_read_only_and_strided_inputs() -> None:
    ready = models.program(MIXED)
    w = _floats(4, 4, seed=1)
    x = _floats(8, 5, seed=2)[:, ::-1][::2, :4]
    x.flags.writeable = False
    for result in every_kind(ready, [x, w]):
        for actual, expected in zip(result, _mixed(x, w), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1])
def test_empty_tensors(n: int) -> None:
    ready = models.program(MIXED)
    x, w = np.ones((n, 4), np.float32), np.ones((4, 4), np.float32)
    for y, z in every_kind(ready, [x, w]):
        assert y.shape == (n, 4)
        assert z.shape == (4 * n,)


def test_strings_and_scalars() -> None:
    ready = models.program(
        "g (string[2] x, float a) => (string[2, 2] y, float b)"
        " {y0 = Concat<axis = 0>(x, x) y = Reshape(y0, s) b = Neg(a)}".replace(
            ") {", ") <int64[2] s = {2, 2}> {"
        )
    )
    x = np.array(["ä", ""], np.object_)
    for y, b in every_kind(ready, [x, np.array(2, np.float32)]):
        assert y.tolist() == [["ä", ""], ["ä", ""]]
        assert isinstance(b, np.ndarray)
        assert b.shape == ()
        assert b == -2


def test_constants_are_computed_once_by_any_number_of_threads() -> None:
    ready = models.program(
        "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}>"
        ' {a = test.lowering.Count<label = "once">(c) b = Neg(a) y = Add(x, b)}'
    )
    x = _floats(2)
    told.calls.clear()
    in_threads(8, lambda index: assert_same(ready.run([x]), [x - np.array([1, 2], np.float32)]))
    assert told.calls == ["once"]


def test_constants_are_computed_always_if_asked() -> None:
    ready = models.program(
        "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}>"
        ' {a = test.lowering.Count<label = "each"> (c) y = Add(x, a)}',
        constants="always",
    )
    told.calls.clear()
    ready.run([_floats(2)])
    ready.run([_floats(2)])
    assert told.calls == ["each", "each"]


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2] x) => (float[2] y) {r = RandomNormal<shape = [2]>() y = Add(x, r)}",
        """g (float[2] x) => (float[2] y) <bool c = {1}> {
            r = If(c) <
                then_branch = t () => (float[2] p) { p = RandomNormal<shape = [2]>() },
                else_branch = e () => (float[2] q) { q = RandomNormal<shape = [2]>() }
            >
            y = Add(x, r) }""",
    ],
)
def test_random_operators_are_drawn_at_every_run(
    graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = registry._TABLE  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delitem(table, ("", "RandomNormal"), raising=False)
    draws = iter(range(100))

    @registry.kernel("RandomNormal")
    def draw(**attributes: Any) -> Any:
        return np.full(2, next(draws), np.float32)

    try:
        ready = models.program(graph)
        seen = [ready.run([np.zeros(2, np.float32)])[0][0] for _ in range(5)]
    finally:
        table.pop(("", "RandomNormal"))
    assert seen == [0, 1, 2, 3, 4]


def test_dropout_in_training_draws_at_every_run() -> None:
    ready = models.program(
        "g (float[64] x) => (float[64] y) <float[1] k = {1}, float r = {0.5}, bool t = {1}>"
        " {s = Constant<value_ints = [64]>() e = Expand(k, s) d = Dropout(e, r, t) y = Add(x, d)}"
    )
    results = [y.tobytes() for (y,) in every_kind(ready, [np.zeros(64, np.float32)])]
    assert len(set(results)) == 4


def test_makers_see_constants_and_are_asked_once_for_a_shape() -> None:
    ready = models.program(
        "g (float[N] x) => (float[N] y) <float[2] c = {1, 2}> {y = test.lowering.Seen(x, c)}"
    )
    told.made.clear()
    for n in (3, 3, 4, 3):
        ready.run([_floats(n)])
    assert told.made == [[False, True], [False, True]]


def test_scratch_memory_is_aligned() -> None:
    ready = models.program("g (float[N] x) => (float[N] y) {y = test.lowering.Scratched(x)}")
    x = _floats(5)
    for result in every_kind(ready, [x]):
        assert_same(result, [x + np.float32(1)])


def test_threads_are_really_used() -> None:
    ready = models.program("g (float[2] x) => (string[2] y) {y = test.lowering.Names(x)}")
    for _ in range(4):
        with use_threads(2):
            (served,) = ready.run([_floats(2)])
        assert len(set(served)) == 2


def test_overflow_is_quiet_in_every_thread() -> None:
    ready = models.program("g (float[4] x) => (float[4] y) {y = test.lowering.Overflow(x)}")
    with warnings.catch_warnings(), use_threads(2):
        warnings.simplefilter("error")
        (y,) = ready.run([np.full(4, 1000, np.float32)])
    assert np.isinf(y).all()


@pytest.mark.parametrize("last", ["ReduceMean<axes = [1]>(c)", "MatMul(c, c)", "Softmax(c)"])
def test_layouts_do_not_decide_bits(last: str) -> None:
    # The result of Add takes the layout of its inputs unless told otherwise.
    ready = models.program(f"""g (float[67, 67] x) => (float[M, N] y) {{
        t = Transpose(x)
        c = Add(t, t)
        y = {last} }}""")
    first, *others = every_kind(ready, [_floats(67, 67)])
    for other in others:
        assert_same(other, first)


def test_what_a_cast_computes_has_no_layout_either() -> None:
    # Cast is a view where the type stays, and computes where it does not.
    ready = models.program("""g (double[67, 67] x) => (float[67, 1] y) {
        t = Transpose(x)
        c = Cast<to = 1>(t)
        y = ReduceMean<axes = [1]>(c) }""")
    first, *others = every_kind(ready, [_floats(67, 67).astype(np.float64)])
    for other in others:
        assert_same(other, first)


def test_a_failing_kernel_says_where_and_on_what() -> None:
    ready = models.program(
        "g (float[2] x) => (float[2] y) {a = Neg(x) [broken] y = test.lowering.Fail(a)}"
    )
    for _ in range(3):
        with pytest.raises(KernelFailed, match=r"node 'broken'.*StrangeError") as caught:
            ready.run([_floats(2)])
        assert "float32[2]" in str(caught.value)
        assert isinstance(caught.value.__cause__, told.StrangeError)


def test_a_failing_second_run_only_puts_the_plan_off() -> None:
    ready = models.program("g (float[3] x, int64 i) => (float y) {a = Neg(x) y = Gather(a, i)}")
    x = _floats(3)
    ready.run([x, np.array(1)])
    with pytest.raises(KernelFailed):
        ready.run([x, np.array(7)])
    assert not ready.plans()
    every_kind(ready, [x, np.array(1)])
    assert len(ready.plans()) == 1


def test_nothing_keeps_inputs_and_results_alive() -> None:
    ready = models.program(
        "g (float[3] x) => (float[3] y) {t = Transpose(x) a = NonZero(t) y = Neg(t)}"
    )
    for _ in range(4):
        x = _floats(3)
        (y,) = ready.run([x])
        gone = [weakref.ref(x), weakref.ref(y)]
        del x, y
        assert [ref() for ref in gone] == [None, None]


def test_a_failing_run_leaves_plans_usable() -> None:
    ready = models.program(
        "g (float[3] x, int64 i) => (float y) {a = Neg(x) b = Exp(a) y = Gather(b, i)}"
    )
    x = _floats(3)
    every_kind(ready, [x, np.array(1)])
    for _ in range(3):
        with pytest.raises(KernelFailed, match=r"Gather.*output 'y'"):
            ready.run([x, np.array(7)])
        np.testing.assert_array_equal(ready.run([x, np.array(2)])[0], np.exp(-x)[2])


def test_a_maker_that_fails_for_the_plan_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    table = registry._TABLE  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delitem(table, ("", "Pow"), raising=False)
    asked: list[Any] = []

    @registry.maker("Pow")
    def only_once(x: Any, exponent: Any) -> Any:
        asked.append(exponent)
        if len(asked) > 1:
            raise StopIteration
        return np.power

    # Of the exponent the plan knows the value, so it asks again.
    try:
        ready = models.program(
            "g (float[2] x) => (float[2] y)"
            "{s = Shape(x) f = Cast<to = 1>(s) a = Pow(x, f) y = Neg(a)}"
        )
        ready.run([_floats(2)])
        with pytest.raises(KernelFailed, match=r"onnx.Pow \(output 'a'\).*StopIteration"):
            ready.run([_floats(2)])
    finally:
        table.pop(("", "Pow"))


def test_the_number_of_inputs_is_checked() -> None:
    ready = models.program(MIXED)
    with pytest.raises(InvalidArgumentError, match="2 inputs are taken, not 1"):
        ready.run([_floats(2, 4)])


def test_values_by_name() -> None:
    ready = models.program("g (float[2] x) => (float[2] y) {a = Neg(x) b = Exp(a) y = Neg(b)}")
    x = _floats(2)
    found = ready.values([x], ["b", "x", "y", "a"])
    assert list(found) == ["b", "x", "y", "a"]
    assert_same([found["a"], found["b"]], [-x, np.exp(-x)])
