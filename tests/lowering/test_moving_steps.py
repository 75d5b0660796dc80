"""Steps on what moves: bound to a copy of it where that is cheap, with the same bits."""

import gc
import weakref
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import foldline
import foldline.lowering.moving_steps
from foldline.lowering.moving_steps import MOST_COPIED, bound_to_a_copy

RANDOM = np.random.default_rng(0)


def _session(size: int = 24) -> Any:
    """A convolution on the input of a model, and what keeps its result in the arena."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,3,{size},{size}] x) => (float[1,8,{size},{size}] y)
        {{ c = Conv<pads = [1,1,1,1]>(x, w) t = Relu(c) y = Add(t, t) }}"""
    )
    w = RANDOM.standard_normal((8, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.checker.check_model(model)
    return foldline.compile(model, options={"oo.level": "O0"}).session(threads=1)


def _input(size: int = 24) -> Any:
    return RANDOM.standard_normal((1, 3, size, size)).astype(np.float32)


def _expected(x: Any, session: Any) -> Any:
    return session.values({"x": x}, ["y"])["y"]


def test_every_run_follows_its_input():
    session = _session()
    for _ in range(5):
        x = _input()
        kept = x.copy()
        (y,) = session.run(None, {"x": x})
        assert y.tobytes() == _expected(x, session).tobytes()
        assert x.tobytes() == kept.tobytes()


def test_what_the_caller_gave_is_let_go():
    session = _session()
    for _ in range(4):
        x = _input()
        alive = weakref.ref(x)
        session.run(None, {"x": x})
        del x
        gc.collect()
        assert alive() is None


@pytest.mark.parametrize("most", [0, MOST_COPIED])
def test_the_bits_do_not_hang_on_whether_it_is_copied(monkeypatch: Any, most: int):
    monkeypatch.setattr(foldline.lowering.moving_steps, "MOST_COPIED", most)
    session = _session(40)
    for _ in range(4):
        x = _input(40)
        assert session.run(None, {"x": x})[0].tobytes() == _expected(x, session).tobytes()


def _counted(size: int) -> tuple[list[str], Any]:
    """Which ways are taken for three runs on different arrays, and the last result."""
    taken, out = list[str](), np.zeros(size, np.float32)

    def bind(x: Any, w: Any):
        taken.append("bind")
        return lambda: (taken.append("bound"), np.multiply(x, w, out))[0]

    def plain(x: Any, w: Any) -> None:
        taken.append("plain")
        np.multiply(x, w, out)

    made: list[Any] = []
    for number in range(1, 4):
        frame: Any = [np.full(size, number, np.float32), np.float32(2)]
        bound_to_a_copy(frame, (0, 1), bind, plain, made)
        assert out[0] == 2 * number
    return taken, made


def test_a_small_input_is_copied_for_a_step_that_is_bound_once():
    taken, made = _counted(MOST_COPIED // 4)
    assert taken == ["bind", "bound", "bound", "bound"]
    assert len(made) == 1


def test_a_large_one_is_read_where_it_is():
    taken, made = _counted(MOST_COPIED // 4 + 1)
    assert taken == ["plain"] * 3
    assert made == []
