"""Expressions of operators, such as `Mul(x, Sigmoid(x))`: read as patterns, and as replacements.

The grammar is that of Python, of which this is allowed:

    Relu(x), com.microsoft.Gelu(x)     an operator, of a domain; None leaves an operand out
    Softmax(x, axis=-1)                an attribute; `axis=a` gives whatever it is the name a
    a + b, a - b, a * b, a / b, a @ b  Add, Sub, Mul, Div, MatMul
    x                                  a value from outside, in a replacement the same one
    2.0                                a constant of one element
    constant(), constant(1.5, rel=1e-6), constant(name='w')     a constant, in patterns only
    (s := Sigmoid(x))                  an operator whose result is called s from there on
    a, b                               two results
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused import OPERATORS as FUSED_OPERATORS
from foldline.dialects.onnx.schema import operators
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import PatternNode
from foldline.stages.rewrite.tracing import PatternOperators, Traced
from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean

INFIX: dict[type[ast.operator], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.MatMult: "MatMul",
}


def parsed(text: str) -> ast.expr:
    """An expression. Raises InvalidArgumentError with the place of what is wrong."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise InvalidArgumentError(f"column {error.offset}: {error.msg}: {text!r}") from None


@dataclass
class PatternReader:
    """Makes a pattern of an expression; names are there for the replacement afterwards."""

    op: PatternOperators = field(default_factory=PatternOperators)
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    attributes: dict[str, tuple[PatternNode, str]] = field(
        default_factory=dict[str, tuple[PatternNode, str]]
    )
    """Names that stand for attributes of nodes."""
    constants: set[str] = field(default_factory=set[str])

    def pattern(self, text: str) -> Pattern:
        """The pattern. Raises InvalidArgumentError."""
        tree = parsed(text)
        made = [self.value(t) for t in _each(tree)]
        for value in made:
            if not isinstance(value, Traced) or value.node is None:
                raise _wrong(tree, "a result is made by no operator")
        self.op.pattern.results = [(value.node, value.output) for value in made]
        self.op.pattern.check()
        return self.op.pattern

    @property
    def names(self) -> set[str]:
        """Values and constants that have a name."""
        return self.values.keys() | self.constants

    def value(self, tree: ast.expr) -> Any:
        """What an expression stands for in a pattern."""
        match tree:
            case ast.Name(id=name):
                return self.values.setdefault(name, Traced(self.op, name))
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                if name in self.values:
                    raise _wrong(tree, f"'{name}' is named twice")
                return self.values.setdefault(name, self.value(inner))
            case ast.Call(func=ast.Name(id="constant")):
                return self._constant(tree)
            case ast.Call():
                return self._node(tree)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in INFIX:
                return self.op.any_of(INFIX[type(sign)])(self.value(left), self.value(right))
            case _:
                return _literal(tree)

    def _node(self, tree: ast.Call) -> Any:
        given: dict[str, Any] = {}
        open_: dict[str, str] = {}
        for name, value in _keywords(tree):
            if isinstance(value, ast.Name):
                open_[value.id] = name
            else:
                given[name] = ast.literal_eval(value)
        made = self.op.any_of(_spelled(tree))(*map(self.value, tree.args), **given)
        for name, attribute in open_.items():
            if name in self.attributes:
                raise _wrong(tree, f"the attribute '{name}' is named twice")
            self.attributes[name] = (made.node, attribute)
        return made

    def _constant(self, tree: ast.Call) -> Any:
        given = {name: ast.literal_eval(value) for name, value in _keywords(tree)}
        if unknown := given.keys() - {"rel", "name"}:
            raise _wrong(tree, f"constant takes rel and name, not {sorted(unknown)}")
        self.constants.update([given["name"]] if "name" in given else [])
        return self.op.constant(*(ast.literal_eval(value) for value in tree.args), **given)


@dataclass(frozen=True)
class Template:
    """What takes the place of a match."""

    tree: ast.expr
    attributes: dict[str, tuple[PatternNode, str]]

    @classmethod
    def read(cls, text: str, pattern: PatternReader) -> Template:
        """The template of a text. Raises InvalidArgumentError for what the pattern lacks."""
        tree = parsed(text)
        own = {t.target.id for t in ast.walk(tree) if isinstance(t, ast.NamedExpr)}
        for call in _calls(tree):
            _known(call)
        for name in _free_names(tree):
            if name not in pattern.names | own:
                hint = did_you_mean(name, pattern.names)
                raise _wrong(tree, f"'{name}' is not in the pattern{hint}")
        for call in _calls(tree):
            for _, value in _keywords(call):
                if isinstance(value, ast.Name) and value.id not in pattern.attributes:
                    hint = did_you_mean(value.id, pattern.attributes)
                    raise _wrong(call, f"no attribute of the pattern is called '{value.id}'{hint}")
        return cls(tree, pattern.attributes)

    def problem(self, match: Match) -> str | None:
        """Why it cannot be built in the place of a match, or None."""
        build = RuleBuilder(match.nodes[-1])
        for call in _calls(self.tree):
            domain, op_type = _key(_spelled(call))
            if not build.has(op_type, domain) and not _is_fused(domain, op_type):
                version = build.opsets.get(domain, "that is not imported")
                return f"operator set {domain or 'ai.onnx'} {version} has no {op_type}"
        return None

    def build(self, build: RuleBuilder, match: Match) -> list[Any]:
        """The new values."""
        names: dict[str, Any] = {}
        return [self._value(tree, build, match, names) for tree in _each(self.tree)]

    def _value(
        self, tree: ast.expr, build: RuleBuilder, match: Match, names: dict[str, Any]
    ) -> Any:
        match tree:
            case ast.Name(id=name):
                return names[name] if name in names else match.value(name)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                names[name] = self._value(inner, build, match, names)
                return names[name]
            case ast.Call():
                inputs = [self._value(each, build, match, names) for each in tree.args]
                given = {name: self._attribute(v, match) for name, v in _keywords(tree)}
                domain, op_type = _key(_spelled(tree))
                if not build.has(op_type, domain) and _is_fused(domain, op_type):
                    domain = FUSED_DOMAIN
                return build.op(op_type, *inputs, domain=domain, **given)
            case ast.BinOp(left=left, op=sign, right=right):
                a = self._value(left, build, match, names)
                b = self._value(right, build, match, names)
                return build.op(INFIX[type(sign)], a, b)
            case _:
                number = _literal(tree)
                return None if number is None else _scalar(number, build, match)

    def _attribute(self, tree: ast.expr, match: Match) -> Any:
        if isinstance(tree, ast.Name):
            node, attribute = self.attributes[tree.id]
            return match.op(node).attribute_values()[attribute]
        return ast.literal_eval(tree)


def _scalar(number: float, build: RuleBuilder, match: Match) -> SSAValue:
    """A constant of the element type of the first value that the match reads."""
    for value in match.inputs:
        attribute = element_type(value.type)
        element = None if attribute is None else element_of(attribute)
        if element is not None:
            return build.constant(np.array(number, element.numpy))
    return build.constant(np.array(number, np.float32))


def _each(tree: ast.expr) -> list[ast.expr]:
    return tree.elts if isinstance(tree, ast.Tuple) else [tree]


def _calls(tree: ast.expr) -> Iterable[ast.Call]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.Call))


def _free_names(tree: ast.expr) -> Iterable[str]:
    """Names of values: not of operators, nor of attributes."""
    match tree:
        case ast.Name(id=name):
            yield name
        case ast.Call(args=args):
            for each in args:
                yield from _free_names(each)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in INFIX:
            yield from _free_names(left)
            yield from _free_names(right)
        case ast.NamedExpr(value=inner):
            yield from _free_names(inner)
        case ast.Tuple(elts=elts):
            for each in elts:
                yield from _free_names(each)
        case _:
            _literal(tree)


def _keywords(tree: ast.Call) -> Iterable[tuple[str, ast.expr]]:
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise _wrong(tree, "** is not allowed")
        if not isinstance(keyword.value, ast.Name):
            _literal(keyword.value, is_attribute=True)
        yield keyword.arg, keyword.value


def _spelled(tree: ast.Call) -> str:
    """`com.microsoft.Gelu` as `com.microsoft::Gelu`."""
    domain, _, op_type = ast.unparse(tree.func).rpartition(".")
    if not all(part.isidentifier() for part in (*domain.split("."), op_type) if part):
        raise _wrong(tree, f"{ast.unparse(tree.func)!r} is no operator")
    return f"{domain}::{op_type}" if domain else op_type


def _key(spelled: str) -> tuple[str, str]:
    domain, _, op_type = spelled.rpartition("::")
    return ("" if domain == "ai.onnx" else domain), op_type


def _is_fused(domain: str, op_type: str) -> bool:
    """Whether a fused operator can stand in for one that the operator set lacks."""
    return domain == "" and (FUSED_DOMAIN, op_type) in FUSED_OPERATORS


def _known(call: ast.Call) -> None:
    """Refuse operators that nothing here can make."""
    key = _key(_spelled(call))
    known = operators()
    if key not in known and not _is_fused(*key):
        hint = did_you_mean(key[1], {name for domain, name in known if domain == key[0]})
        raise _wrong(call, f"no operator is called '{key[1]}'{hint}")


def _literal(tree: ast.expr, *, is_attribute: bool = False) -> Any:
    try:
        value = ast.literal_eval(tree)
    except ValueError:
        raise _wrong(tree, "it is neither an operator, a name nor a number") from None
    if not is_attribute and not (value is None or type(value) in (int, float)):
        raise _wrong(tree, "constants are numbers")
    return value


def _wrong(tree: ast.expr, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"column {tree.col_offset + 1}: {why}: {ast.unparse(tree)!r}")
