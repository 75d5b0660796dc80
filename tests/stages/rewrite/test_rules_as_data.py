"""Rules as data: the grammar, what it makes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foldline.stages.rewrite.rules_as_data import load_rules, rules_from
from foldline.support.errors import InvalidArgumentError, InvalidOption
from foldline.support.remarks import Remark
from tests.stages.rewrite.rules import graph, ops, outputs_of, run

HALF, TWO = "h = Constant<value_float = 0.5>()", "t = Constant<value_float = 2.0>()"


def rule(pattern: str | list[str], replace: str, **more: Any) -> dict[str, Any]:
    return {"name": "rule", "pattern": pattern, "replace": replace, **more}


@pytest.mark.parametrize(
    ("pattern", "replace", "body", "expected"),
    [
        ("x * Sigmoid(x)", "Swish(x)", "s = Sigmoid(x) y = Mul(s, x)", ["Swish"]),
        ("Relu(Relu(x))", "Max(x, 0.0)", "a = Relu(x) y = Relu(a)", ["Max"]),
        ("x * 0.5", "x / 2.0", f"{HALF} y = Mul(h, x)", ["Div"]),
        ("Neg(x) @ Transpose(x)", "Neg(x @ Transpose(x))", "k = Transpose(x) n = Neg(x) "
         "m = MatMul(n, k) y = MatMul(m, x)", ["Transpose", "MatMul", "Neg", "MatMul"]),
        ("Clip(x, -1.0, 1.0)", "Tanh(x)", "a = Constant<value_float=-1.0>() "
         "b = Constant<value_float=1.0>() y = Clip(x, a, b)", ["Tanh"]),
        ("Clip(x, None, 6.0)", "Min(x, 6.0)",
         "z = Constant<value_float=6.0>() y = Clip(x, , z)", ["Min"]),
        ("Softmax(x, axis=-1)", "Exp(LogSoftmax(x, axis=-1))",
         "y = Softmax(x)", ["LogSoftmax", "Exp"]),
        ("Softmax(x, axis=a)", "Exp(LogSoftmax(x, axis=a))",
         "y = Softmax<axis=0>(x)", ["LogSoftmax", "Exp"]),
        ("(s := Sigmoid(x)) * (1.0 - s)", "Tanh(x)", "o = Constant<value_float=1.0>() "
         "s = Sigmoid(x) d = Sub(o, s) y = Mul(s, d)", ["Tanh"]),
        ("x * constant(name='w')", "(d := Add(x, w)) + d", f"{TWO} y = Mul(x, t)", ["Add", "Add"]),
        ("x * constant(2.00001, rel=1e-4)", "x + x", f"{TWO} y = Mul(x, t)", ["Add"]),
        ("Abs(x)", "com.microsoft.Gelu(x)", "y = Abs(x)", ["Abs"]),
    ],
)  # fmt: skip
def test_rules(pattern: str, replace: str, body: str, expected: list[str]) -> None:
    on = graph(body)
    run(on, *rules_from([rule(pattern, replace)]), max_iterations=1)
    assert ops(on) == expected


def test_values_stay() -> None:
    on = graph(f"{HALF} y = Mul(h, x)")
    before = outputs_of(on)
    run(on, *rules_from([rule("x * 0.5", "x / 2.0", preserves_bits=True)]))
    np.testing.assert_array_equal(outputs_of(on), before)


def test_two_results() -> None:
    on = graph("a = Relu(x) b = Neg(a) c = Abs(a) y = Sub(b, c)")
    rules = rules_from([rule("Neg((r := Relu(x))), Abs(r)", "Tanh(x), Sigmoid(x)")])
    run(on, *rules)
    assert sorted(ops(on)) == ["Sigmoid", "Sub", "Tanh"]


def test_spellings_and_order() -> None:
    rules = rules_from(
        {
            "rules": [
                rule(["Abs(Neg(x))", "Abs(Abs(x))"], "Abs(x)"),
                {**rule("Neg(x)", "Abs(x)", runs_after=["rule", "gelu"]), "name": "after"},
            ]
        }
    )
    assert rules[1].runs_after == ("rule", "gelu")
    on = graph("a = Neg(x) b = Abs(a) c = Abs(b) y = Neg(c)")
    run(on, *rules)
    assert ops(on) == ["Abs"]


def test_a_fused_operator_stands_in_where_the_operator_set_has_none() -> None:
    on = graph("s = Sigmoid(x) y = Mul(s, x)", opset=21)
    run(on, *rules_from([rule("x * Sigmoid(x)", "Swish(x)")]))
    assert [op.name for op in on.nodes] == ["fused.Swish"]
    newer = graph("s = Sigmoid(x) y = Mul(s, x)", opset=24)
    run(newer, *rules_from([rule("x * Sigmoid(x)", "Swish(x)")]))
    assert [op.name for op in newer.nodes] == ["onnx.Swish"]


def test_what_the_operator_set_lacks_declines() -> None:
    remarks: list[Remark] = []
    on = graph("y = Abs(x)", opset=8)
    run(on, *rules_from([rule("Abs(x)", "NonZero(x)")]), trace=remarks.append)
    assert remarks[-1].message == "operator set ai.onnx 8 has no NonZero"
    away = graph("y = Abs(x)")
    run(away, *rules_from([rule("Abs(x)", "com.microsoft.QuickGelu(x)")]), trace=remarks.append)
    assert "operator set com.microsoft that is not imported has no QuickGelu" in remarks[-1].message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rule("Mul(x", "x"), "pattern: column 4: '\\(' was never closed"),
        (rule("Mul(x, lambda: 1)", "x"), "neither an operator, a name nor a number"),
        (rule("x", "Relu(x)"), "made by no operator"),
        (rule("Mul(x, 'a')", "x"), "constants are numbers"),
        (rule("Mul(x, True)", "x"), "constants are numbers"),
        (rule("Mul(**x)", "x"), r"\*\* is not allowed"),
        (rule("(a := Relu(x)) + (a := Abs(x))", "x"), "'a' is named twice"),
        (rule("Softmax(Softmax(x, axis=a), axis=a)", "x"), "attribute 'a' is named twice"),
        (rule("Relu(constant(1, abs=2))", "x"), "takes rel and name"),
        (rule("Relu(x)", "Abss(x)"), "no operator is called 'Abss'; did you mean 'Abs'"),
        (rule("Relu(x)", "Abs(z)"), "'z' is not in the pattern"),
        (rule("Relu(x)", "Softmax(x, axis=b)"), "no attribute of the pattern is called 'b'"),
        (rule("Relu(x)", "__import__('os').getcwd()"), "no operator"),
        (rule("Relu(x) ** 2", "x"), "neither"),
        (rule("Relu(x)", "x", runs_after=["gelo"]), "no rule 'gelo'; did you mean 'gelu'"),
        ({**rule("Relu(x)", "x"), "name": "prune"}, "built-in"),
        ({**rule("Relu(x)", "x"), "when": "now"}, r"rules\.0\.when: Extra inputs"),
        ({"name": "rule"}, r"rules\.0\.pattern: Field required"),
        (rule("Relu(x)", 3), r"rules\.0\.replace: Input should be a valid string"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        rules_from([given])


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        rules_from([rule("Mul(x", "x"), {**rule("Relu(x)", "y"), "name": "second"}], "my.yaml")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["rules.0 (rule)", "rules.1 (second)"]
    assert all(line.startswith("my.yaml: ") for line in lines)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n- {name: silu, pattern: x * Sigmoid(x), replace: Swish(x)}\n")
    assert [r.name for r in load_rules(file)] == ["silu"]
    with pytest.raises(InvalidOption):
        load_rules(tmp_path / "missing.yaml")
    file.write_text("rules: 3\n")
    with pytest.raises(InvalidArgumentError, match="valid list"):
        load_rules(file)


def test_bounds_of_operator_sets() -> None:
    (bounded,) = rules_from([rule("Neg(x)", "Abs(x)", min_opset=13, max_opset=17)])
    for opset, expected in ((12, "Neg"), (13, "Abs"), (17, "Abs"), (18, "Neg")):
        on = graph("y = Neg(x)", opset=opset)
        run(on, bounded)
        assert ops(on) == [expected]
    with pytest.raises(InvalidArgumentError, match="min_opset is 17, max_opset 13"):
        rules_from([rule("Neg(x)", "Abs(x)", min_opset=17, max_opset=13)])
