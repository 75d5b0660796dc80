"""What holds for every graph: levels agree bit for bit, text and files round-trip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, note, settings
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import foldline
from foldline.compiler import CompiledModel
from foldline.dialects import load_dialects
from foldline.dialects.onnx.equality import difference
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.observers import module_text
from foldline.support.errors import FoldlineError
from tests.properties.graphs import Drawn, graphs

CHECKED = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def _folding_by_reference_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fast kernels may differ in last bits from those that run the models here."""
    monkeypatch.setitem(GRADES, "fast", ("reference",))


def session(compiled: CompiledModel) -> Session:
    return Session(lower(compiled.module, grades=("reference",)), threads=1)


def compiled_at(level: str, model: onnx.ModelProto | bytes) -> CompiledModel:
    return foldline.compile(model, options={"oo.level": level})


@CHECKED
@given(graphs())
def test_levels_agree_bit_for_bit(drawn: Drawn) -> None:
    note(onnx.printer.to_text(drawn.model))
    expected = session(compiled_at("O0", drawn.model))
    feeds = [drawn.feed, *_other_sizes(drawn, expected)]
    for level in ("O1", "O2"):
        compiled = compiled_at(level, drawn.model)
        note(f"{level}:\n{module_text(compiled.module)}")
        exported = session(compiled_at("O0", compiled.to_bytes()))
        for feed in feeds:
            _agree(expected, session(compiled), feed)
            _agree(expected, exported, feed)


def _other_sizes(drawn: Drawn, runs: Session) -> Iterator[dict[str, np.ndarray]]:
    """The same inputs with other sizes where those have names, if the model takes them."""
    for size in (0, 1, 4):
        feed = {
            value.name: np.resize(
                drawn.feed[value.name],
                [
                    size if dim.dim_param else dim.dim_value
                    for dim in value.type.tensor_type.shape.dim
                ],
            )
            for value in drawn.model.graph.input
        }
        try:
            runs.run(None, feed)
        except FoldlineError:
            continue
        yield feed


def _agree(expected: Session, actual: Session, feed: dict[str, np.ndarray]) -> None:
    pairs = zip(expected.run(None, feed), actual.run(None, feed), strict=True)
    for argument, (want, got) in zip(expected.get_outputs(), pairs, strict=True):
        assert (want.dtype, want.shape) == (got.dtype, got.shape), argument.name
        # Which of the many NaNs an operation gives is the processor's affair.
        bits = [
            np.where(a != a, np.float32("nan"), a).astype(a.dtype).tobytes() for a in (want, got)
        ]
        assert bits[0] == bits[1], f"{argument.name}: {want} against {got}"


@CHECKED
@given(graphs())
def test_compiling_again_changes_nothing(drawn: Drawn) -> None:
    note(onnx.printer.to_text(drawn.model))
    once = compiled_at("O2", drawn.model).to_bytes()
    note(onnx.printer.to_text(onnx.load_from_string(once)))
    twice = compiled_at("O2", once).to_bytes()
    note(onnx.printer.to_text(onnx.load_from_string(twice)))
    assert once == twice


@CHECKED
@given(graphs())
def test_text_reads_back(drawn: Drawn) -> None:
    for level in ("O0", "O2"):
        module = compiled_at(level, drawn.model).module
        text = module_text(module)
        again = _parsed(text)
        assert difference(module, again) is None
        assert module_text(again) == text


def _parsed(text: str) -> ModuleOp:
    context = Context()
    load_dialects(context)
    return Parser(context, text).parse_module()
