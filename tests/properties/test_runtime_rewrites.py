"""Properties of the passes of the runtime rewrites: T2 to T6 of their specification."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foldline
from foldline import transforms
from foldline.graph import ModelGraph
from foldline.stages.fusion import FUSION
from foldline.support.passes import PASSES
from foldline.transforms import OptimizeOptions, Transform
from tests.properties.rewrite_models import (
    MODES,
    SAMPLES,
    Sample,
    conv_batchnorm_fold,
    digest,
    digests,
    linear_pack_fuse,
    outputs,
    qdq,
)
from tests.stages.passes.fusion.graphs import Node, model, normal

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ("O0", "O1", "O2", "O3")
SECTION_1 = list(SAMPLES)
"""The passes of the specification, in its order."""
YES = ["matmul-integer-fusion", "constant-folding", "linear-pack-fuse", "conv-activation"]
NO = ["qdq", "conv-batchnorm-fold", "gelu", "attention"]
FUSIONS = [placed.run.name for step in FUSION.steps for placed in step.placed]


def alone(name: str) -> list[str]:
    """The passes of the stage of fusion other than one, and than those that must run."""
    kept = {name, "release-quantisation"}
    return [n for n in dict.fromkeys(FUSIONS) if n not in kept and not PASSES[n].opt_in]


def without(name: str) -> list[str]:
    return [name, *alone(name)]


def applied(sample: Sample, **options: Any) -> set[str]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    report = foldline.compile(sample.proto, options=given).report
    return {row.name.split(" (")[0] for row in report.rows if row.changes}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", YES)
def test_t2_a_pass_that_preserves_bits_changes_none(name: str, mode: str) -> None:
    """Alone among fusions, and left out."""
    sample = SAMPLES[name]()
    assert PASSES[name].preserves_bits
    assert name in applied(sample, mode=mode, passes_disable=alone(name))
    assert name not in applied(sample, mode=mode, passes_disable=without(name))
    (on,) = outputs(sample, mode=mode, passes_disable=alone(name))
    (off,) = outputs(sample, mode=mode, passes_disable=without(name))
    assert [x.tobytes() for x in on] == [x.tobytes() for x in off]


@pytest.mark.parametrize("name", NO)
def test_t2_a_pass_that_moves_bits_stays_within_its_bound(name: str) -> None:
    sample = SAMPLES[name]()
    assert not PASSES[name].preserves_bits
    assert name in applied(sample, passes_disable=alone(name))
    ((on,),) = outputs(sample, passes_disable=alone(name))
    ((off,),) = outputs(sample, passes_disable=without(name))
    quantum = 0.05 if name == "qdq" else 16 * np.finfo(np.float32).eps * np.abs(off).max()
    assert np.abs(on - off).max() <= quantum * (1 + 1e-5)


@pytest.mark.parametrize("name", NO)
def test_t2_a_pass_that_moves_bits_is_not_in_the_exact_pipeline(name: str) -> None:
    assert name not in applied(SAMPLES[name](), mode="exact")
    assert f"fusion/{name}" in transforms.pipeline("O3", "fast")
    assert f"fusion/{name}" not in transforms.pipeline("O3", "exact")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SAMPLES)
def test_t3_r4_threads_change_no_bit(name: str, level: str, mode: str) -> None:
    """The third run of a session has a plan, the first has none: R4 holds for both."""
    sample = SAMPLES[name]()
    options = {"oo_level": level, "mode": mode}
    (expected,) = outputs(sample, **options)
    for threads in (2, 3, 8):
        for found in outputs(sample, 3, threads, **options):
            assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]


def test_t4_runs_and_processes_give_the_same_bits() -> None:
    here = digests()
    for name, mode in product(SAMPLES, MODES):
        for results in outputs(SAMPLES[name](), 4, mode=mode):
            assert digest(results) == here[f"{name} {mode}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "11"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.properties.rewrite_models"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == here


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SAMPLES)
def test_t5_running_the_pipeline_again_changes_nothing(name: str, mode: str) -> None:
    options = {"mode": mode}
    once = foldline.compile(SAMPLES[name]().proto, options=options).to_bytes()
    assert foldline.compile(once, options=options).to_bytes() == once


@pytest.mark.parametrize("name", SAMPLES)
def test_t5_running_the_transforms_again_changes_nothing(name: str) -> None:
    on = ModelGraph(SAMPLES[name]().proto)
    assert on.optimize().converged
    assert [row.name for row in on.optimize().rows if row.applications] == []


def ran(sample: Sample, *order: Transform) -> list[str]:
    """The operators after transforms have run once, in the order given."""
    on = ModelGraph(sample.proto)
    on.optimize(OptimizeOptions(transforms=list(order), max_iterations=1))
    return [op.op_type for op in on.nodes if op.op_type != "Constant"]


def test_t5_gelu_comes_before_linear_pack_fuse() -> None:
    """So that it can be an epilogue."""
    graph: list[Node] = [
        ("MatMul", "t w", "x"),
        ("Div", "x root", "d"),
        ("Erf", "d", "e"),
        ("Add", "e one", "a"),
        ("Mul", "x a", "m"),
        ("Mul", "m half", "y"),
    ]
    numbers = {"root": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5)}
    weights = {"w": normal(8, 8), **numbers}
    sample = Sample(model(graph, weights, {"t": (4, 8)}, 17), {})
    first, second = transforms.gelu(), transforms.linear_pack_fuse()
    assert ran(sample, first, second) == ["Linear"]
    assert ran(sample, second, first) == ["Linear", "Gelu"]


def test_t5_conv_batchnorm_fold_comes_before_conv_activation() -> None:
    """So that Conv, BatchNormalization and Relu are one node."""
    sample = conv_batchnorm_fold()
    sample.proto.graph.node[-1].output[0] = "n"
    sample.proto.graph.node.add(op_type="Relu", input=["n"], output=["y"])
    first, second = transforms.conv_batchnorm_fold(), transforms.conv_activation()
    assert ran(sample, first, second) == ["Conv"]
    assert ran(sample, second, first) == ["Conv", "Relu"]


def test_t5_qdq_comes_before_constant_folding() -> None:
    """Folding leaves weights that qdq waits for: protect-quantisation says so, before all."""
    listed = transforms.pipeline()
    protected = listed.index("prepare/protect-quantisation")
    assert protected < listed.index("prepare/constant-folding")
    assert listed.index("fusion/qdq") < listed.index("fusion/release-quantisation")
    compiled = foldline.compile(qdq().proto, options={"passes.disable": ["qdq"]})
    kinds = [node.op_type for node in compiled.to_proto().graph.node]
    assert kinds.count("DequantizeLinear") == 3
    fused = foldline.compile(qdq().proto).to_proto()
    assert "QLinearConv" in [node.op_type for node in fused.graph.node]


def test_t5_attention_comes_before_linear_pack_fuse() -> None:
    """Its products have no constant matrix, so either order gives the same."""
    sample = SAMPLES["attention"]()
    first, second = transforms.attention(), transforms.linear_pack_fuse()
    assert ran(sample, first, second) == ran(sample, second, first) == ["Attention"]
    assert FUSIONS.index("attention") < FUSIONS.index("linear-pack-fuse")


def test_t5_what_is_folded_into_weights_is_a_plain_constant() -> None:
    """A second constant-folding has nothing to do: folded weights are constants already."""
    compiled = foldline.compile(conv_batchnorm_fold().proto)
    kinds = [node.op_type for node in compiled.to_proto().graph.node]
    assert [kind for kind in kinds if kind != "Constant"] == ["Conv"]


def test_t6_levels_and_modes() -> None:
    """O0 runs nothing, O1 folds, O3 has all passes of section 1; exact mode those with a yes."""
    named = {
        (level, mode): [n.split("/")[1] for n in transforms.pipeline(level, mode)]
        for level, mode in product(LEVELS, MODES)
    }
    in_order = {
        key: [n for n in dict.fromkeys(listed) if n in SECTION_1] for key, listed in named.items()
    }
    for mode in MODES:
        assert named["O0", mode] == []
        assert in_order["O1", mode] == ["constant-folding"]
        assert not set(named["O1", mode]) & set(FUSIONS) - {
            *("common-subexpressions", "merge-equal-constants", "prune", "recover-reshapes"),
            "release-quantisation",
        }
    fused = [n for n in SECTION_1 if n != "constant-folding"]
    assert [n for n in in_order["O3", "fast"] if n != "constant-folding"] == fused
    assert sorted(in_order["O3", "exact"]) == sorted(YES)
    assert sorted([*YES, *NO]) == sorted(SECTION_1)
    for level in LEVELS:
        assert named[level, "exact"] == [
            n for n in named[level, "fast"] if PASSES[n].preserves_bits
        ]
    assert named["O3", "fast"].count("constant-folding") > 1


@pytest.mark.parametrize("spelling", [("None", "O0"), ("Basic", "O1"), ("All", "O3")])
def test_r1_levels_have_two_names(spelling: tuple[str, str]) -> None:
    assert transforms.pipeline(spelling[0]) == transforms.pipeline(spelling[1])
    assert transforms.pipeline("All") == transforms.pipeline()


def test_r2_fast_is_the_default_mode_and_exact_runs_what_preserves_bits() -> None:
    assert transforms.pipeline("O3") == transforms.pipeline("O3", "fast")
    ((found,),) = outputs(linear_pack_fuse())
    ((fast,),) = outputs(linear_pack_fuse(), mode="fast")
    assert found.tobytes() == fast.tobytes()
    assert {n.split("/")[1] for n in transforms.pipeline("O3", "exact")} == {
        n.split("/")[1] for n in transforms.pipeline("O3") if PASSES[n.split("/")[1]].preserves_bits
    }


@pytest.mark.parametrize("name", PASSES)
def test_r3_every_pass_says_its_level_and_whether_it_preserves_bits(name: str) -> None:
    info = PASSES[name]
    assert info.name == name
    assert info.level in LEVELS
    assert isinstance(info.preserves_bits, bool)
    is_asked_for = info.opt_in or info.switch == "weightClip"
    assert info.preserves_bits or is_asked_for or info.level == "O3"


def plan_of(sample: Sample, level: str) -> Any:
    """The plan that a session has made by its third run."""
    session = foldline.compile(sample.proto, options={"oo.level": level}).session(threads=1)
    for _ in range(3):
        (y,) = session.run(None, dict(sample.feed))
    (pool,) = session.program.plans()
    assert y.nbytes == 200 * 400 * 4
    return pool.plan


def test_t8_the_intermediate_of_a_fused_chain_is_one_tensor_that_is_written_over() -> None:
    """What is not fused works in place, and the last value leaves."""
    sample = linear_pack_fuse()
    nodes = sample.proto.graph.node
    nodes[-1].output[0] = "r"
    for op_type, given, result in (
        ("Reciprocal", "r", "f"),
        ("Floor", "f", "g"),
        ("Neg", "g", "y"),
    ):
        nodes.add(op_type=op_type, input=[given], output=[result])
    fused = plan_of(sample, "O3")
    assert fused.calls[0].call.kernel.op_type == "Linear"
    assert fused.arena_bytes == 200 * 400 * 4
    assert len(plan_of(sample, "O0").calls) == 6
    assert len(fused.calls) == 4
