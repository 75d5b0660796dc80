"""The public module of transforms: S rows, groups 1 and 2 of the rule API, R5 and R6."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import foldline
from foldline import transforms
from foldline.graph import ModelGraph
from foldline.stages.fusion import FUSION
from foldline.support.errors import InvalidOption
from foldline.support.passes import PASSES
from foldline.transforms import DefaultsOptions, OptimizeOptions
from tests.stages.check import onnx_model

FIXED = onnx_model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Neg(a) }")
OPEN = onnx_model("g (float[n,3] x) => (float[n,3] y) { a = Relu(x) y = Neg(a) }")
STAGE = list(dict.fromkeys(placed.run.name for step in FUSION.steps for placed in step.placed))
FIXING = ["specialize-shapes", "shape-fixation"]


def names(found: list[transforms.Transform]) -> list[str]:
    return [transform.name for transform in found]


def test_s1_each_factory_is_named_as_its_transform() -> None:
    assert len(set(transforms.BUILT_IN)) == len(transforms.BUILT_IN)
    for name in transforms.BUILT_IN:
        factory = getattr(transforms, name)
        assert factory().name == name.replace("_", "-")
        assert factory() == factory()
        assert name in dir(transforms)
    with pytest.raises(AttributeError):
        _ = transforms.no_such_transform


def test_s1_every_pass_of_the_fusion_stage_has_a_factory() -> None:
    stage = [placed.run.name for step in FUSION.steps for placed in step.placed]
    assert {name.replace("_", "-") for name in transforms.BUILT_IN} == set(stage)
    named = {*FIXING, "drop-boundary-permutes", "remove-double-permute", "conv-batchnorm-fold"}
    assert named <= set(stage)


def test_public_names_are_there() -> None:
    assert all(hasattr(transforms, name) for name in transforms.__all__)
    assert foldline.transforms is transforms
    assert foldline.ModelGraph is ModelGraph


@pytest.mark.parametrize(
    ("specialize", "fixation", "inputs", "outputs"),
    product([{}, {"n": 1}], *[[False, True]] * 3),
)
def test_1_s2_what_joins_the_defaults(
    specialize: Any, fixation: bool, inputs: bool, outputs: bool
) -> None:
    found = names(transforms.defaults(DefaultsOptions(specialize, fixation, inputs, outputs)))
    joined = set(FIXING) if specialize or fixation else set[str]()
    joined |= {"drop-boundary-permutes"} if inputs or outputs else set()
    assert set(found) == joined | set(names(transforms.defaults()))
    assert [name for name in found if name in STAGE] == [
        name for name in STAGE if name in joined or not PASSES[name].opt_in
    ]


def test_s2_the_defaults_are_in_the_order_of_the_stage() -> None:
    stage = [placed.run.name for step in FUSION.steps for placed in step.placed]
    plain = [name.split(" (")[0] for name in names(transforms.defaults())]
    assert plain == [name for name in stage if not PASSES[name].opt_in]
    assert names(transforms.defaults()) == names(transforms.defaults(DefaultsOptions()))


def test_2_s3_an_unpinned_graph_fixes_shapes_without_being_asked() -> None:
    assert names(ModelGraph(FIXED).default_transforms()) == names(transforms.defaults())
    found = names(ModelGraph(OPEN).default_transforms())
    assert found == names(transforms.defaults(DefaultsOptions(shape_fixation=True)))
    assert set(found) - set(names(transforms.defaults())) == set(FIXING)


@pytest.mark.parametrize("model", [FIXED, OPEN], ids=["fixed", "open"])
def test_s3_optimize_runs_exactly_the_default_transforms(model: Any) -> None:
    on = ModelGraph(model)
    expected = names(on.default_transforms())
    assert [row.name for row in on.optimize().rows] == expected


def test_s3_options_of_the_graph_turn_passes_off() -> None:
    on = ModelGraph(FIXED, {"passes.disable": ["remove-double-permute"]})
    assert "remove-double-permute" not in names(on.default_transforms())
    exact = ModelGraph(FIXED, {"mode": "exact"})
    assert all(transform.preserves_bits for transform in exact.default_transforms())
    assert [r.name for r in exact.optimize().rows] == names(exact.default_transforms())


def test_s4_defaults_of_the_options_are_used() -> None:
    on = ModelGraph(OPEN)
    report = on.optimize(OptimizeOptions(defaults=DefaultsOptions({"n": 4})))
    assert report.row("specialize-shapes").applications == 1
    assert on.to_proto().graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_r6_the_pipeline_is_listed_without_a_model() -> None:
    listed = transforms.pipeline()
    assert listed == transforms.pipeline("O3", "fast")
    assert "fusion/conv-batchnorm-fold" in listed
    assert listed.index("prepare/infer-shapes") < listed.index("fusion/conv-batchnorm-fold")
    assert transforms.pipeline("O0") == []
    bits = [name.split("/")[1] for name in transforms.pipeline("O3", "exact")]
    assert all(PASSES[name].preserves_bits for name in bits)
    assert set(transforms.pipeline("O3", "exact")) <= set(listed)
    with pytest.raises(InvalidOption):
        transforms.pipeline("O4")


def test_r6_a_compile_runs_the_pipeline_that_is_listed() -> None:
    for level, mode in product(("O1", "O2", "O3"), ("fast", "exact")):
        report = foldline.compile(FIXED, options={"oo.level": level, "mode": mode}).report
        ran = [f"{r.stage}/{r.name.split(' (')[0]}" for r in report.rows if r.name in PASSES]
        listed = [name for name in transforms.pipeline(level, mode) if name in ran]
        assert ran == listed


def test_r5_a_session_names_the_passes_that_changed_something() -> None:
    model = onnx_model("g (float[2,3] x) => (float[2,3] y) { a = Identity(x) y = Neg(a) }")
    (row,) = [r for r in foldline.compile(model).session().applied_passes if r.nodes_after == 1]
    assert (row.name, row.nodes_before) == ("eliminate-identity", 2)
    assert row.changes
    assert foldline.compile(model, options={"oo.level": "O0"}).session().applied_passes == ()
