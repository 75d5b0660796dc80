from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from foldline.sample_inputs import EDGES, fitting_size, has_unknown_dimensions, sample_feed
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


def test_the_first_size_that_is_accepted() -> None:
    arguments = [Arg("x", "tensor(float)", [1, "samples"])]
    tried: list[int] = []

    def accepts(feed: Mapping[str, Any]) -> bool:
        tried.append(feed["x"].shape[1])
        return feed["x"].shape[1] >= 100

    assert fitting_size(arguments, accepts) == 128
    assert tried == [2, 8, 32, 64, 128]
    assert fitting_size(arguments, lambda feed: False) == 2


def test_no_size_is_tried_where_none_is_open_or_it_is_large() -> None:
    def fails(feed: Mapping[str, Any]) -> bool:
        raise AssertionError("nothing is to be tried")

    assert fitting_size([Arg("x", "tensor(float)", [3])], fails) == 2
    large = [Arg("x", "tensor(float)", ["n", 1 << 22])]
    assert fitting_size(large, fails) == 2
