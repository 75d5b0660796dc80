from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from foldline.sample_inputs import EDGES, has_unknown_dimensions, sample_feed
from foldline.support.dtypes import BY_NAME
from foldline.support.errors import InvalidArgumentError


@dataclass
class Arg:
    name: str
    type: str
    shape: list[Any] | None


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("element", BY_NAME)
def test_every_element_type(element: str, kind: str) -> None:
    args = [Arg("x", f"tensor({element})", [2, 3]), Arg("s", f"tensor({element})", [])]
    feed = sample_feed(args, kind)
    assert feed["x"].dtype == BY_NAME[element].numpy
    assert feed["x"].shape == (2, 3)
    assert isinstance(feed["s"], np.ndarray)
    assert feed["s"].shape == ()


def test_edges_are_there() -> None:
    args = [Arg("x", "tensor(float)", [4])]
    assert np.isnan(sample_feed(args, "nan")["x"]).any()
    assert set(sample_feed(args, "inf")["x"]) == {np.inf, -np.inf, 1.0, -1.0}
    zeros = sample_feed(args, "negative zero")["x"]
    assert np.signbit(zeros[0])
    assert zeros[0] == 0
    assert not np.signbit(zeros[1])
    assert not sample_feed(args, "zeros")["x"].any()
    assert not sample_feed([Arg("x", "tensor(int64)", [9])], "zeros")["x"].any()


def test_unknown_dimensions() -> None:
    args = [Arg("x", "tensor(float)", ["N", None, 3])]
    assert sample_feed(args, unknown=0)["x"].shape == (0, 0, 3)
    assert has_unknown_dimensions(args)
    assert not has_unknown_dimensions([Arg("x", "tensor(float)", [2]), Arg("y", "t", None)])


def test_seed() -> None:
    args = [Arg("x", "tensor(double)", [8])]
    one, again, other = (sample_feed(args, seed=seed)["x"] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_other_types_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"x is a seq\(tensor\(float\)\)"):
        sample_feed([Arg("x", "seq(tensor(float))", None), Arg("y", "tensor(float)", [])])
