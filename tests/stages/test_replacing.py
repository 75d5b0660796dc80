"""What rewrites of single nodes share."""

from __future__ import annotations

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import node_name, result_names
from foldline.stages.replacing import bypass, drop_unused, like, names_of, only_reader, replace
from foldline.stages.rewriting import Rewriter, count_nodes
from tests.stages.check import from_onnx, named, nodes, op_types


def test_a_replacement_takes_names_and_what_only_the_old_node_read_goes() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Abs(w) b = Neg(a) [sum] y = Add(x, b) }""")
    rewriter, op = Rewriter(module), nodes(module)[-1]
    assert replace(rewriter, op, Builder.at(op).identity(op.operands[0], names_of(op))) is None
    assert op_types(module) == ["Identity"]
    assert (node_name(nodes(module)[0]), result_names(nodes(module)[0])) == ("sum", ("y",))
    assert not any(map(is_constant, module.walk()))
    assert rewriter.nodes == count_nodes(module) == 1


def test_what_has_other_readers_or_is_random_stays() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y, float[2] z) {
        a = Abs(x) z = Neg(a) r = RandomNormalLike(x) [sum] y = Sum(x, a, r) b = Abs(x) }""")
    rewriter, op = Rewriter(module), named(module, "sum")
    operands = list(op.operands)
    rewriter.set_operands(op, operands[:1])
    drop_unused(rewriter, operands)
    assert op_types(module) == ["Abs", "Neg", "RandomNormalLike", "Sum", "Abs"]


def test_nothing_goes_where_a_name_cannot_be_taken() -> None:
    module = from_onnx("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    (op,) = nodes(module)
    reason = bypass(Rewriter(module), op, [op.operands[0]])
    assert reason is not None
    assert "names the output 'y'" in reason
    assert op_types(module) == ["Neg"]


def test_the_only_reader_may_read_twice() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y, float[2] z) {
        a = Abs(x) y = Add(a, a) z = Neg(x) }""")
    a, y, _ = nodes(module)
    assert only_reader(a.results[0]) is y
    assert only_reader(a.operands[0]) is None


def test_the_same_operator_on_other_operands_keeps_all_but_facts() -> None:
    module = from_onnx("g (float[2] x) => (float[2] y) { [n] y = LeakyRelu <alpha = 0.5> (x) }")
    (op,) = nodes(module)
    op.attributes["fold.known"] = op.attributes["onnx.names"]
    made = like(op, op.operands, [op.results[0].type], Names("m"))
    assert made.properties == op.properties
    assert node_name(made) == "m"
    assert "fold.known" not in made.attributes
    made.erase()
