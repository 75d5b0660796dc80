"""The API from end to end: what goes in, what comes out, what stays as it was."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import foldline
from foldline.support.errors import (
    InvalidArgumentError,
    InvalidModel,
    InvalidOption,
    UnsupportedOperator,
)
from foldline.support.passes import STAGES


def foldable(shape: tuple[int | str, ...] = ("N", 4)) -> ModelProto:
    """x + (1 + 2), through an Identity, with a dead node."""
    nodes = [
        helper.make_node("Add", ["one", "two"], ["three"], name="sum"),
        helper.make_node("Identity", ["x"], ["same"], name="same"),
        helper.make_node("Add", ["same", "three"], ["y"], name="add"),
        helper.make_node("Neg", ["x"], ["unused"], name="dead"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(np.full(4, value, np.float32), name)
            for value, name in ((1.0, "one"), (2.0, "two"))
        ],
        doc_string="kept",
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "me"
    model.metadata_props.add(key="k", value="v")
    return model


def kinds(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


X = np.arange(8, dtype=np.float32).reshape(2, 4)


def test_every_kind_of_source_gives_one_result(tmp_path: Path) -> None:
    model = foldable()
    data = model.SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    results = [
        foldline.compile(source).to_bytes()
        for source in (model, data, path, str(path), io.BytesIO(data))
    ]
    assert len(set(results)) == 1
    assert model.SerializeToString() == data
    assert path.read_bytes() == data


def test_what_is_optimised_and_what_is_kept() -> None:
    small = foldline.optimize(foldable())
    onnx.checker.check_model(small, full_check=True)
    assert kinds(small) == ["Constant", "Add"]
    assert [tensor.name for tensor in small.graph.initializer] == []
    assert (small.producer_name, small.graph.doc_string) == ("me", "kept")
    assert small.metadata_props[0].key == "k"
    assert (small.ir_version, small.opset_import[0].version) == (8, 17)
    assert small.graph.input == foldable().graph.input
    assert small.graph.output == foldable().graph.output


def test_level_o0_is_the_model_itself() -> None:
    assert foldline.optimize(foldable(), options={"oo.level": "O0"}) == foldable()


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_all_levels_compute_the_same(level: str) -> None:
    compiled = foldline.compile(foldable(), options={"oo.level": level})
    (y,) = compiled.session().run(None, {"x": X})
    np.testing.assert_array_equal(y, X + 3)


def test_the_report_lists_every_stage_and_reason() -> None:
    report = foldline.compile(foldable()).report
    assert [s for s in STAGES if s in {row.stage for row in report.rows}] == list(STAGES)
    assert report.rows[0].nodes_before == 4
    assert report.rows[-1].nodes_after == 1
    assert any(r.kind == "applied" and r.node == "sum" for r in report.remarks)
    assert set(report.to_json()) == {
        *("passes", "remarks", "engines", "marks", "bounds", "rewrites", "seconds")
    }


def test_import_notes_are_remarks() -> None:
    model = foldable()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    remarks = foldline.compile(model).report.remarks
    assert any("sorted" in remark.message for remark in remarks)


def test_pinned_shapes() -> None:
    small = foldline.optimize(foldable(), options={"inputs.x.shape": [2, 4]})
    dims = small.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [2, 4]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("z", [1], "no such input"),
        ("x", [1], "1 dimensions given, the model has 2"),
        ("x", [1, 5], "size 5 given where the model fixes 4"),
    ],
)
def test_bad_pins_are_refused(name: str, shape: list[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        foldline.compile(foldable(), options={f"inputs.{name}.shape": shape})


def overridable() -> ModelProto:
    model = foldable()
    model.graph.input.append(helper.make_tensor_value_info("one", TensorProto.FLOAT, [4]))
    return model


def test_overridable_initializers_are_no_constants_unless_frozen() -> None:
    compiled = foldline.compile(overridable())
    session = compiled.session()
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + 3)
    given = {"x": X, "one": np.full(4, 5, np.float32)}
    np.testing.assert_array_equal(session.run(None, given)[0], X + 7)
    frozen = foldline.optimize(overridable(), options={"freezeInitializers": True})
    assert [i.name for i in frozen.graph.input] == ["x"]
    assert kinds(frozen) == ["Constant", "Add"]


def test_session_scope_is_weaker_than_graph_scope() -> None:
    compiler = foldline.Compiler({"oo.level": "O0"})
    assert kinds(compiler.compile(foldable()).to_proto()) == kinds(foldable())
    graph = compiler.compile(foldable(), options={"oo.level": "O1"})
    assert kinds(graph.to_proto()) == ["Constant", "Add"]


def test_unknown_options_and_wrong_values_are_said_together() -> None:
    with pytest.raises(InvalidOption) as caught:
        foldline.compile(foldable(), options={"oo.levle": "O1", "export.fused": "calls"})
    assert "oo.level" in str(caught.value)
    assert "'calls' is not valid; valid: functions, standard" in str(caught.value)


def test_unknown_operators_compile_but_do_not_run() -> None:
    model = foldable()
    model.opset_import.append(helper.make_opsetid("acme", 1))
    for name in ("first", "second"):
        model.graph.node.append(
            helper.make_node(name.title(), ["x"], [name], name=name, domain="acme")
        )
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]))
    compiled = foldline.compile(model)
    assert kinds(compiled.to_proto()) == ["Constant", "Add", "First", "Second"]
    with pytest.raises(UnsupportedOperator) as caught:
        compiled.session()
    assert "First" in str(caught.value)
    assert "Second" in str(caught.value)


def test_a_failed_compile_writes_nothing_and_changes_nothing(tmp_path: Path) -> None:
    model = foldable()
    model.graph.node[2].input[1] = "gone"
    before = model.SerializeToString()
    with pytest.raises(InvalidModel, match="gone"):
        foldline.compile(model).save(tmp_path / "out.onnx")
    assert list(tmp_path.iterdir()) == []
    assert model.SerializeToString() == before


def test_optimising_twice_changes_nothing() -> None:
    once = foldline.optimize(foldable())
    assert foldline.optimize(once).SerializeToString() == once.SerializeToString()


def test_a_folded_splat_weight_gives_the_bits_of_a_computed_one() -> None:
    """Kernels choose their way by layout; a splat is one element seen under a shape."""
    shape = numpy_helper.from_array(np.array([64, 96, 1, 1], np.int64), "shape")
    value = numpy_helper.from_array(np.array([0.1], np.float32))
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"], value=value),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 96, 1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 1, 1])],
        [shape],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(0).standard_normal((1, 96, 1, 1)).astype(np.float32)
    plain, folded = (
        foldline.compile(model, options={"oo.level": level}).session(threads=1)
        for level in ("O0", "O1")
    )
    for _ in range(3):
        a, b = (session.run(None, {"x": x})[0] for session in (plain, folded))
        assert a.tobytes() == b.tobytes()
