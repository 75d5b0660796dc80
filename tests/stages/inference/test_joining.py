"""Joining and refining types, case by case."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.ir import Attribute
from xdsl.parser import Parser

from foldline.dialects import load_dialects
from foldline.stages.inference.joining import join, opened, refine


def typed(text: str) -> Attribute:
    context = Context()
    load_dialects(context)
    return Parser(context, text).parse_attribute()


UNKNOWN = "!onnx.unknown"
NAMED = 'tensor<?x3xf32, #onnx.dims<"N", _>>'


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ("tensor<2xf32>", "tensor<2xf32>", "tensor<2xf32>"),
        ("tensor<2x3xf32>", "tensor<2x4xf32>", "tensor<2x?xf32>"),
        ("tensor<2x3xf32>", NAMED, "tensor<?x3xf32>"),
        (NAMED, NAMED, NAMED),
        (NAMED, 'tensor<?x3xf32, #onnx.dims<"M", _>>', "tensor<?x3xf32>"),
        ("tensor<2x3xf32>", "tensor<2xf32>", "tensor<*xf32>"),
        ("tensor<2xf32>", "tensor<*xf32>", "tensor<*xf32>"),
        ("tensor<2xf32>", "tensor<2xi64>", UNKNOWN),
        ("tensor<2xf32>", UNKNOWN, UNKNOWN),
        (
            "!onnx.sequence<tensor<2xf32>>",
            "!onnx.sequence<tensor<3xf32>>",
            "!onnx.sequence<tensor<?xf32>>",
        ),
        ("!onnx.sequence<tensor<2xf32>>", "tensor<2xf32>", UNKNOWN),
        (
            "!onnx.optional<tensor<2xf32>>",
            "!onnx.optional<tensor<2xi64>>",
            "!onnx.optional<!onnx.unknown>",
        ),
    ],
)
def test_join(a: str, b: str, joined: str) -> None:
    assert join(typed(a), typed(b)) == typed(joined)
    assert join(typed(b), typed(a)) == typed(joined)


@pytest.mark.parametrize(
    ("old", "inferred", "hint", "trusted", "contradiction"),
    [
        ("tensor<2xf32>", UNKNOWN, "tensor<*xf32>", "tensor<2xf32>", False),
        (UNKNOWN, "tensor<2xf32>", "tensor<2xf32>", "tensor<2xf32>", False),
        ("tensor<2xf32>", "tensor<*xf32>", "tensor<*xf32>", "tensor<2xf32>", False),
        ("tensor<2x3xf32>", "tensor<?x3xf32>", "tensor<?x3xf32>", "tensor<2x3xf32>", False),
        (NAMED, "tensor<?x3xf32>", NAMED, NAMED, False),
        (NAMED, "tensor<2x3xf32>", "tensor<2x3xf32>", "tensor<2x3xf32>", False),
        ("tensor<2x3xf32>", NAMED, NAMED, "tensor<2x3xf32>", False),
        ("tensor<2xf32>", "tensor<3xf32>", "tensor<3xf32>", "tensor<3xf32>", True),
        ("tensor<2xf32>", "tensor<2x2xf32>", "tensor<2x2xf32>", "tensor<2x2xf32>", True),
        ("tensor<2xf32>", "tensor<2xi64>", "tensor<2xi64>", "tensor<2xi64>", True),
        (
            "!onnx.sequence<tensor<2xf32>>",
            "!onnx.sequence<tensor<?xf32>>",
            "!onnx.sequence<tensor<?xf32>>",
            "!onnx.sequence<tensor<2xf32>>",
            False,
        ),
    ],
)
def test_refine(old: str, inferred: str, hint: str, trusted: str, contradiction: bool) -> None:
    found = refine(typed(old), typed(inferred), trusted=False)
    assert (found.type, found.contradiction) == (typed(hint), contradiction)
    found = refine(typed(old), typed(inferred), trusted=True)
    assert (found.type, found.contradiction) == (typed(trusted), contradiction)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("tensor<2xf32>", "tensor<*xf32>"),
        ("!onnx.sequence<tensor<2xf32>>", "!onnx.sequence<tensor<*xf32>>"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_opened(given: str, left: str) -> None:
    assert opened(typed(given)) == typed(left)
