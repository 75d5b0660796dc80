"""Why a node is gone, or here, and by whom."""

from __future__ import annotations

import pytest

from foldline.support.errors import InvalidArgumentError
from foldline.workbench.stepper import Stepper
from foldline.workbench.why import LINE, Why
from tests.foldline.workbench.stepped import a_stepper


def why(stepper: Stepper, name: str) -> list[str]:
    remarks = stepper.here.shown.report.remarks
    module = stepper.here.module
    return list(Why(stepper.original, module, remarks, stepper.past(), stepper.ahead()).lines(name))


@pytest.fixture(scope="module")
def ended() -> Stepper:
    stepper = a_stepper()
    stepper.resume()
    return stepper


def test_a_folded_node(ended: Stepper) -> None:
    assert why(ended, "tiled") == [
        "it is gone: folded into 'w'",
        "by prepare/constant-folding at Tile 'tiled'",
        "touched by: prepare/infer-shapes, prepare/constant-folding",
        "prepare/constant-folding applied: computed float32[8, 8]",
    ]


def test_a_fused_node_that_the_change_was_not_named_after(ended: Stepper) -> None:
    lines = why(ended, "sum")
    assert lines[:2] == [
        "it is gone: part of foldline.Linear 'relu'",
        "by fusion/linear-pack-fuse at Gemm 'sum'",
    ]
    assert "fusion/matmul-add-to-gemm applied at 'product': MatMul, Add replaced" in lines


def test_a_rule_that_left_it_says_how_far_it_got(ended: Stepper) -> None:
    (line,) = [line for line in why(ended, "product") if "gemm-batchnorm-fold declined" in line]
    assert "2 of 3 nodes match" in line
    assert "Relu 'relu'" in line


def test_a_node_that_stands_in_the_place_of_others(ended: Stepper) -> None:
    lines = why(ended, "relu")
    assert lines[0].startswith("it is here: relu: y: float[N,8] = foldline.Linear")
    assert "in the place of: product, sum, relu" in lines
    assert lines[-1] == "nothing is still to come"


def test_a_constant_says_what_it_was_folded_from(ended: Stepper) -> None:
    lines = why(ended, "w")
    assert "folded from: tiled" in lines
    assert not any("to come" in line for line in lines)


def test_what_is_still_to_come() -> None:
    lines = why(a_stepper(), "sum")
    assert lines[1] == "no pass has said anything of it"
    assert lines[2].startswith("still to come: prepare/inline-functions, ")
    assert lines[-1].startswith("then stage1 (")
    assert lines[-1].endswith(" passes)")
    assert all(len(line) <= LINE for line in lines)


def test_facts_of_a_node_that_stands() -> None:
    stepper = a_stepper()
    stepper.stage()
    assert "partly known, found by dimension-compute" in why(stepper, "target")


def test_a_name_that_is_nowhere(ended: Stepper) -> None:
    with pytest.raises(InvalidArgumentError, match="'nobody'"):
        why(ended, "nobody")
