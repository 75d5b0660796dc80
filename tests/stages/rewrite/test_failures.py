"""What ends a run, and that nothing is left of it: F rows, groups 15 to 17 of the rule API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from foldline.graph import ModelGraph
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.transform import Transform, rewrite
from foldline.support.errors import FoldlineError, RewriteError, RuleFailed
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import Seen, chain, graph, ops, run, swap, text, to

THREE = "[one] a = Neg(x) b = Relu(a) [two] c = Neg(b) d = Relu(c) [three] e = Neg(d) y = Relu(e)"


def fails(on: ModelGraph, *transforms: Transform, **options: Any) -> RuleFailed:
    """The error of a run, after which the graph is what it was."""
    before, module = text(on), on.module
    held = [result for op in on.nodes for result in op.results]
    data = on.to_proto().SerializeToString()
    with pytest.raises(RuleFailed) as caught:
        on.optimize(OptimizeOptions(list(transforms), **options))
    assert text(on) == before
    assert on.to_proto().SerializeToString() == data
    assert on.module is module
    assert held == [result for op in on.nodes for result in op.results]
    return caught.value


def test_15_f1_f2_a_condition_that_raises_at_the_third_match() -> None:
    def condition(match: Match) -> bool:
        if len(seen.names) == 3:
            raise LookupError("third")
        return True

    seen, later = Seen(condition), Seen()
    rule = rewrite("rule", chain("Neg"), to("Abs"), seen)
    on = graph(THREE)
    error = fails(on, rule, rewrite("later", chain("Relu"), to("Abs"), later))
    assert seen.names == ["one", "two", "three"]
    assert later.names == []
    assert error.report.row("rule").replacements == 2
    assert error.report.status == error.status == "INTERNAL"


def test_15_f2_earlier_transforms_and_iterations_are_undone() -> None:
    def late(match: Match) -> bool:
        if seen.names.count("one") == 2:
            raise ValueError("second iteration")
        return False

    seen = Seen(late)
    error = fails(
        graph(THREE), swap("first", "Relu", "Abs"), rewrite("rule", chain("Neg"), to("Tanh"), seen)
    )
    assert error.iteration == 2
    assert error.report.row("first").replacements == 3


def test_16_a_replacement_that_raises() -> None:
    def replace(build: Any, match: Match) -> Any:
        build.Abs(match.inputs[0])
        raise OSError(5, "broken")

    error = fails(graph(THREE), rewrite("rule", chain("Neg"), replace))
    assert isinstance(error.__cause__, OSError)


REFUSED: dict[str, tuple[Callable[[Any, Match], Any], str]] = {
    "count": (lambda b, m: [b.Abs(m.inputs[0])] * 2, "1 values are replaced, by 2"),
    "none": (lambda b, m: [], "1 values are replaced, by 0"),
    "no value": (lambda b, m: 3.5, "not a value"),
    "dtype": (lambda b, m: b.op("Cast", m.inputs[0], to=7), "is replaced by one of"),
    "shape": (lambda b, m: b.op("Transpose", m.inputs[0], perm=(1, 0)), "is replaced by one of"),
    "ill-typed": (lambda b, m: b.MatMul(m.inputs[0], m.inputs[0]), "ill-typed"),
    "cycle": (lambda b, m: b.Abs(m.outputs[0]), "cyclic"),
    "unknown operator": (lambda b, m: b.Abss(m.inputs[0]), "Abss"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_16_i5_what_a_replacement_may_not_give(what: str) -> None:
    replace, message = REFUSED[what]
    error = fails(graph(THREE), rewrite("rule", chain("Neg"), replace))
    assert message in str(error), error
    assert error.node == "one"


def test_16_a_result_that_hangs_on_itself_through_others() -> None:
    """The replacement of the match reads what stands behind it."""
    on = graph("a = Neg(x) b = Sigmoid(a) c = Abs(a) y = Add(b, c)")

    def replace(build: Any, match: Match) -> Any:
        after = next(iter(match.outputs[0].uses)).operation.results[0]
        return build.Relu(after)

    assert "RewriteError" in str(fails(on, rewrite("rule", chain("Neg"), replace)))


def test_16_a_node_that_holds_a_cache() -> None:
    model = onnx_model(
        """g (float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v,
              float[1,2,3,8] past_k, float[1,2,3,8] past_v)
            => (float[1,2,4,8] y, float[1,2,7,8] pk, float[1,2,7,8] pv) {
            [attention] a, pk, pv = Attention(q, k, v, , past_k, past_v) y = Relu(a)
        }""",
        ir_version=11,
        opset=23,
    )
    rule = rewrite("rule", chain("Attention", "Relu"), to("Relu"))
    on = ModelGraph(model)
    assert on.find_pattern(chain("Attention"))
    error = fails(on, rule)
    assert "holds a cache" in str(error)
    assert error.node == "attention"


def test_17_f3_the_message_names_transform_node_and_iteration() -> None:
    class Custom(Exception):
        status, code = "UNAVAILABLE", 14

    def condition(match: Match) -> bool:
        raise Custom("no")

    error = fails(
        graph("r = Relu(x) [one] a = Neg(r) y = Abs(a)"),
        rewrite("my rule", chain("Neg", "Abs"), to("Relu"), condition),
    )
    assert (error.transform, error.node, error.iteration) == ("my rule", "one", 1)
    assert (error.status, error.code) == ("UNAVAILABLE", 14)
    assert "'my rule' failed at 'one' in iteration 1: Custom: no" in str(error)
    assert isinstance(error.__cause__, Custom)
    assert isinstance(error, RewriteError)


def test_17_f3_a_node_without_name_goes_by_its_first_result() -> None:
    error = fails(graph("a = Neg(x) y = Relu(a)"), rewrite("r", chain("Neg"), lambda b, m: []))
    assert error.node == "a"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_f3_interrupts_pass_unchanged_and_roll_back(kind: type[BaseException]) -> None:
    def condition(match: Match) -> bool:
        raise kind

    on = graph(THREE)
    before = text(on)
    rules = [swap("first", "Relu", "Abs"), rewrite("rule", chain("Neg"), to("Abs"), condition)]
    with pytest.raises(kind):
        on.optimize(OptimizeOptions(rules))
    assert text(on) == before
    run(on, swap("again", "Neg", "Tanh"))
    assert "Neg" not in ops(on)


def _retype(match: Match) -> None:
    match.nodes[0].results[0].replace_all_uses_with(match.inputs[0])


def _erase(match: Match) -> None:
    reader = next(iter(match.outputs[0].uses)).operation
    reader.detach()


def _rewire(match: Match) -> None:
    reader = next(iter(match.outputs[0].uses)).operation
    reader.operands = [match.inputs[0]]


def _attribute(match: Match) -> None:
    match.nodes[0].attributes["mine"] = match.nodes[0].attributes["onnx.names"]


CHANGES = [_retype, _erase, _rewire, _attribute]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("part", ["condition", "function"])
def test_f4_functions_of_rules_may_look_and_not_touch(
    change: Callable[[Match], None], part: str
) -> None:
    def condition(match: Match) -> bool:
        if part == "condition":
            change(match)
        return True

    def replace(build: Any, match: Match) -> Any:
        change(match)
        return build.Abs(match.inputs[0])

    error = fails(graph(THREE), rewrite("rule", chain("Neg"), replace, condition))
    assert f"its {part} changed the graph" in str(error)


def test_f4_verify_watches_all_of_the_graph() -> None:
    on = graph(f"{THREE.replace('y =', 'f =')} far = Abs(f) y = Tanh(far)")

    def condition(match: Match) -> bool:
        here: Any = match.nodes[0]
        while here.next_op is not None:
            here = here.next_op
        here.attributes.pop("onnx.names", None)
        here.prev_op.attributes.pop("onnx.names", None)
        return False

    error = fails(on, rewrite("rule", chain("Neg"), to("Abs"), condition), verify=True)
    assert "changed the graph" in str(error)


def test_f4_values_of_another_graph_are_refused() -> None:
    other = graph("y = Relu(x)").nodes[0].results[0]
    error = fails(graph(THREE), rewrite("rule", chain("Neg"), lambda b, m: b.Abs(other)))
    assert "not defined where the match stands" in str(error)


def test_f4_values_of_another_run_are_refused() -> None:
    kept: list[Any] = []

    def keep(build: Any, match: Match) -> Any:
        kept.append(build.Abs(match.inputs[0]))
        return kept[-1]

    run(graph(THREE), rewrite("keep", chain("Neg"), keep))
    error = fails(graph(THREE), rewrite("rule", chain("Neg"), lambda b, m: kept[0]))
    assert "not defined where the match stands" in str(error)


def test_f5_a_match_is_void_after_its_run() -> None:
    kept: list[Match] = []
    rule = rewrite("rule", chain("Neg"), to("Abs"), lambda m: kept.append(m) or True)
    run(graph(THREE), rule)
    for use in (lambda m: m.nodes, lambda m: m.outputs, lambda m: m.inputs, lambda m: m["neg_0"]):
        with pytest.raises(RewriteError, match="run that is over"):
            use(kept[0])


def test_f5_a_found_match_is_void_when_the_graph_changes() -> None:
    on = graph(THREE)
    (match, *_) = on.find_pattern(chain("Neg"))
    assert match.nodes
    run(on, swap("rule", "Neg", "Abs"))
    with pytest.raises(RewriteError, match="run that is over"):
        _ = match.nodes


def test_verify_names_the_transform_that_broke_the_module() -> None:
    class Breaks:
        def turn(self, context: Any, row: Any, blame: Any) -> None:
            op = next(op for op in context.module.walk() if op.name == "onnx.Neg")
            op.operands = [op.results[0]]
            context.rewriter.changes += 1

    error = fails(graph(THREE), Transform("breaks", Breaks()), verify=True)
    assert error.transform == "breaks"
    assert isinstance(error.__cause__, FoldlineError)


def test_a_refused_replacement_leaves_no_readers_behind() -> None:
    on = graph("a = Neg(x) y = Relu(a)")
    (match,) = on.find_pattern(chain("Neg"))
    value = match.inputs[0]
    before = len(list(value.uses))
    with pytest.raises(RewriteError):
        on.replace(match.outputs, lambda b: [b.Abs(value), b.Abs(value)], match.inputs)
    assert len(list(value.uses)) == before
    imports = on.nodes[0].parent_op().properties["opsets"]  # pyright: ignore
    with pytest.raises(RewriteError):
        on.replace(match.outputs, lambda b: b.Cast(b.fused("Gelu", value), to=7), match.inputs)
    assert on.nodes[0].parent_op().properties["opsets"] == imports  # pyright: ignore
    np.testing.assert_array_equal(len(list(value.uses)), before)
