"""Operators that draw random numbers: what a seed fixes, in sessions and at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldline
from tests.lowering.models import model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
HALVES = np.full((4, 50), 0.5, np.float32)

DRAWS = {
    "RandomNormal": "RandomNormal<shape = [4, 50]{seed}>()",
    "RandomNormalLike": "RandomNormalLike<mean = 0.0{seed}>(x)",
    "RandomUniform": "RandomUniform<shape = [4, 50]{seed}>()",
    "RandomUniformLike": "RandomUniformLike<low = 0.0{seed}>(x)",
    "Bernoulli": "Bernoulli<dtype = 1{seed}>(x)",
    "Multinomial": "Multinomial<sample_size = 50{seed}>(x)",
    "Dropout": "Dropout{only_seed}(x, ratio, training)",
}


def _session(draws: str, level: str = "O3") -> Any:
    graph = (
        "g (float[4, 50] x) => (a, b) <float ratio = {0.5}, bool training = {1}> "
        f"{{ a = {draws} b = {draws} }}"
    )
    return foldline.compile(model(graph, HEAD), options={"oo.level": level}).session()


def _draws(name: str, seed: str | None) -> str:
    value = f"seed = {seed}" if seed else ""
    only = f"<{value}>" if value else ""
    return DRAWS[name].format(seed=f", {value}" if value else "", only_seed=only)


def _seed(name: str, number: int) -> str:
    return str(number) if name == "Dropout" else f"{number}.0"


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_in_every_session_run_and_level(name: str) -> None:
    draws = _draws(name, _seed(name, 7))
    first, second = _session(draws).run(None, {"x": HALVES})
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) > 1
    for level in ("O0", "O3"):
        session = _session(draws, level)
        for _ in range(4):  # The plan is made on the way.
            np.testing.assert_array_equal(session.run(None, {"x": HALVES})[0], first)
    (other, _) = _session(_draws(name, _seed(name, 8))).run(None, {"x": HALVES})
    assert not np.array_equal(other, first)


@pytest.mark.parametrize("name", DRAWS)
def test_without_a_seed_every_node_and_run_draws_afresh(name: str) -> None:
    session = _session(_draws(name, None))
    drawn = [value.tobytes() for _ in range(4) for value in session.run(None, {"x": HALVES})]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("name", DRAWS)
def test_nodes_that_draw_are_neither_folded_nor_merged(name: str) -> None:
    graph = (
        "g () => (a, b) <float[4, 50] x = {" + ", ".join(["0.5"] * 200) + "}, "
        f"float ratio = {{0.5}}, bool training = {{1}}> {{ a = {_draws(name, None)} "
        f"b = {_draws(name, None)} }}"
    )
    optimised = foldline.optimize(model(graph, HEAD), options={"fold.graphOutputs": True})
    assert [node.op_type for node in optimised.graph.node].count(name) == 2


def test_the_global_generator_is_neither_read_nor_moved() -> None:
    np.random.seed(3)
    before = np.random.get_state()[1].tolist()  # pyright: ignore
    for name in DRAWS:
        _session(_draws(name, None)).run(None, {"x": HALVES})
    assert np.random.get_state()[1].tolist() == before  # pyright: ignore
