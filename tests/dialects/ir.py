"""IR from text and back, for the tests of dialects."""

from __future__ import annotations

import io

from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from foldline.dialects import load_dialects
from foldline.support.text import decoded

TEXTS = st.one_of(
    st.text(alphabet='ab_/:0 "%\\,<>#\n\t\x00\x7fäß名🙂', max_size=12),
    st.binary(max_size=8).map(decoded),
    st.sampled_from(
        ["größe", 'a"b', "50%", "%2C,", "line\nbreak", "\\C3", "\x00", "名/字:0", "_", ""]
    ),
)
"""Strings as models hold them; bytes that are not UTF-8 are lone surrogates."""


def context() -> Context:
    """A context with every dialect."""
    fresh = Context()
    load_dialects(fresh)
    return fresh


def parse(text: str) -> ModuleOp:
    """The module of a text."""
    return Parser(context(), text).parse_module()


def text_of(op: Operation) -> str:
    """The text of an operation."""
    stream = io.StringIO()
    Printer(stream).print_op(op)
    return stream.getvalue()


def attribute_text(attribute: Attribute) -> str:
    """The text of an attribute."""
    stream = io.StringIO()
    Printer(stream).print_attribute(attribute)
    return stream.getvalue()


def reparsed(attribute: Attribute) -> Attribute:
    """An attribute after print and parse; its text is ASCII on one line."""
    text = attribute_text(attribute)
    assert text.isascii()
    assert text.isprintable()
    return Parser(context(), text).parse_attribute()


def graph(
    body: str,
    arguments: str = "",
    inputs: str = "",
    outputs: str = "",
    results: str = "",
    opsets: str = '"" : 17',
    functions: str = "",
) -> ModuleOp:
    """A module with one graph: `arguments` are `%x: type`, `results` the returned values."""
    head = f"^bb0({arguments}):\n" if arguments else ""
    return parse(
        f"""builtin.module attributes {{onnx.ir_version = 10 : i64}} {{
        {functions}
        onnx.graph() {{opsets = #onnx.opsets<{opsets}>}} ({{
        {head}{body}
        onnx.return({results}) {{interface = #onnx.interface<"g", [{inputs}], [{outputs}], []>}}
        }})
        }}"""
    )
