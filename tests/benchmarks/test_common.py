"""Timing in turns, tables, means and child processes."""

from __future__ import annotations

import itertools
import math

import pytest

from benchmarks import common


def test_contenders_take_turns_and_the_median_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "REST_SECONDS", 0.0)
    monkeypatch.setattr(common, "BLOCK_SECONDS", 0.0)
    order: list[str] = []
    ticks = itertools.accumulate([0, 1, 0, 5, 0, 2, 0, 5, 0, 9, 0, 5])
    medians = common.interleaved_medians(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")},
        lambda: float(next(ticks)),
        seconds=0.0,
        rounds=3,
    )
    assert medians == {"a": 2.0, "b": 5.0}
    assert order == [*"aabb", *"aabb" * 3]


def test_table_aligns_the_first_column_to_the_left() -> None:
    assert common.table(["model", "ms"], [["a", "10.5"], ["longer", "1"]]) == (
        "model     ms\na       10.5\nlonger     1"
    )


def test_geometric_mean() -> None:
    assert common.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert math.isnan(common.geometric_mean([]))


def test_a_child_that_fails_says_why() -> None:
    row = common.in_child("benchmarks.no_such_module", seconds=60)
    assert "No module named" in row["failure"]


def test_a_missing_peer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert common.installed("no_such_peer", "onnxruntime") == ["onnxruntime"]
    assert "no_such_peer is not installed: left out" in capsys.readouterr().out
