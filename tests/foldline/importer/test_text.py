"""Printing a module and parsing the text gives an equal module that exports to the same bytes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from foldline.dialects import load_dialects
from foldline.dialects.onnx.tensor import SideFile, side_file
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.importer import import_model
from tests.conformance.suite import fast_cases, node_cases
from tests.foldline.importer.test_mutation import base_model

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def assert_text_is_enough(model: ModelProto) -> None:
    module = import_model(model)
    with side_file(SideFile()):
        text = printed(module)
        again = Parser(context(), text).parse_module()
    verify_model(again)
    assert module.is_structurally_equivalent(again)
    assert export_model(again) == export_model(module)


def printed(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def context() -> Context:
    made = Context()
    load_dialects(made)
    return made


def test_a_model_with_every_message_kind() -> None:
    assert_text_is_enough(base_model())


def test_a_cover_of_the_suite() -> None:
    for case in fast_cases():
        assert_text_is_enough(case.model)


@pytest.mark.slow
def test_every_node_case_of_the_suite() -> None:
    for case in node_cases():
        assert_text_is_enough(case.model)


@pytest.mark.slow
@pytest.mark.parametrize("category", ["light", "pytorch-converted", "simple"])
def test_model_files_of_the_suite(category: str) -> None:
    files = [file for file in sorted(DATA.rglob("*.onnx")) if category in file.parts]
    assert files
    for file in files:
        assert_text_is_enough(onnx.load(file))


@pytest.mark.parametrize("name", ["größe/ß:0", 'a"b\\c', "50%", "tab\there", "名前", " "])
def test_names_of_any_text(name: str) -> None:
    value = helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}_dim", 3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Relu", [name], ["y"], name=name, doc_string=name)
    graph = helper.make_graph([node], name, [value], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert_text_is_enough(model)
