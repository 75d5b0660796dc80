"""Every node test folded as a whole, with unknown sizes, and through an exported file.

Single nodes hold no constants, so by themselves they show nothing of folding: with all inputs
baked in as initializers each becomes a constant, of the right value.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx.backend.test.case.test_case import TestCase as Case

import foldline
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.stages.observers import module_text
from tests.conformance import variants

FOLD_ALL = {"oo.level": "O2", "fold.graphOutputs": True, "export.grow": True}
UNFOLDED = variants.reasons("not_folded.txt")
KNOWN = variants.reasons("known_failures.txt")


def _parameters() -> Iterator[object]:
    for case in variants.cases():
        reason = _reason(KNOWN, f"{case.name}_cpu")
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(case, id=case.name, marks=marks)


def _reason(rows: list, name: str) -> str | None:
    return next((reason for pattern, reason in rows if pattern.search(name)), None)


CASES = list(_parameters())


@pytest.mark.parametrize("case", CASES)
def test_baked_in(case: Case) -> None:
    model, reason = variants.baked_in(case), _reason(UNFOLDED, case.name)
    if model is None:
        assert reason, "an input is no tensor"
        return
    compiled = foldline.compile(model, options=FOLD_ALL)
    exported = compiled.to_proto()
    variants.check_exported(model, exported)
    variants.check_outputs(case, variants.run_as_imported(exported, []))
    nodes = (op for op in main_graph(compiled.module).body.block.ops if isinstance(op, NodeOp))
    left = [op.op_type for op in nodes if not isinstance(op, ConstantOp)]
    if reason:
        assert left, f"everything is folded, so not_folded.txt is wrong: {reason}"
    else:
        assert not left, module_text(compiled.module)


@pytest.mark.parametrize("case", CASES)
def test_with_unknown_sizes(case: Case) -> None:
    model = variants.symbolic(case)
    compiled = foldline.compile(model, options={"oo.level": "O3"})
    variants.check_exported(model, compiled.to_proto())
    session = compiled.session()
    names = [value.name for value in session.get_inputs()]
    feed = dict(zip(names, variants.inputs(case), strict=True))
    variants.check_outputs(case, session.run(None, feed))


@pytest.mark.parametrize("case", CASES)
def test_through_export(case: Case) -> None:
    exported = foldline.compile(case.model, options={"oo.level": "O3"}).to_proto()
    variants.check_exported(case.model, exported)
    variants.check_outputs(case, variants.run_as_imported(exported, variants.inputs(case)))


@pytest.mark.parametrize("rows", [UNFOLDED], ids=["not_folded.txt"])
def test_each_line_says_something(rows: list) -> None:
    names = [case.name for case in variants.cases()]
    for pattern, _ in rows:
        assert any(pattern.search(name) for name in names), pattern.pattern
