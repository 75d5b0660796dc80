"""release-quantisation: dequantised weights in files and in sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import foldline
from foldline.dialects.fold.flags import no_need_reason
from foldline.kernels import quantisation
from foldline.stages.context import PassContext
from foldline.stages.passes.quantisation.release_quantisation import ReleaseQuantisation
from tests.stages.check import op_types
from tests.stages.passes.fusion.graphs import Node, normal
from tests.stages.passes.fusion.quantised import codes, proto, scale

SIZE = 256
"""Weights of so many rows are larger than what may grow."""
DEQUANTISE: Node = ("DequantizeLinear", "w w_s w_z", "d")
HELD: dict[str, Any] = {
    "w": codes(SIZE, SIZE),
    "w_s": scale(0.01),
    "w_z": np.full((), 3, np.int8),
    "p": np.array([SIZE // 2, 2 * SIZE]),
}
GRAPHS: dict[str, list[Node]] = {
    "DequantizeLinear": [DEQUANTISE, ("MatMul", "x d", "y")],
    "Cast and Mul": [("Cast", "w", "c", {"to": 1}), ("Mul", "c w_s", "d"), ("MatMul", "x d", "y")],
    "transposed": [DEQUANTISE, ("Transpose", "d", "t"), ("MatMul", "x t", "y")],
}


def model(name: str) -> onnx.ModelProto:
    return proto(GRAPHS[name], HELD, {"x": (np.float32, ("N", SIZE))})


def kinds(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node if node.op_type != "Constant"]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_kept_weights_stay_integers_in_the_file(name: str, level: str):
    given = model(name)
    exported = foldline.optimize(given, options={"oo.level": level})
    assert exported.ByteSize() <= 1.02 * given.ByteSize()
    assert ("DequantizeLinear" in kinds(exported)) or (name == "Cast and Mul" and level == "O1")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_folded_weights_are_floats_in_the_file(name: str, level: str):
    given = model(name)
    options = {"oo.level": level, "export.quantisation": "fold"}
    compiled = foldline.compile(given, options=options)
    exported = compiled.to_proto()
    assert kinds(exported) == ["MatMul"]
    assert exported.ByteSize() > 3.5 * given.ByteSize()
    assert not any(no_need_reason(op) for op in compiled.module.walk())
    x = normal(3, SIZE)
    plain = foldline.compile(given, options={"oo.level": "O0"}).session().run(None, {"x": x})
    np.testing.assert_array_equal(compiled.session().run(None, {"x": x})[0], plain[0])


def test_no_dequantised_constant_is_computed_in_a_run(monkeypatch: pytest.MonkeyPatch):
    sizes: list[int] = []
    original = quantisation._in_tiles  # pyright: ignore[reportPrivateUsage]

    def counted(body: Any, source: Any, target: Any, per_tensor: bool) -> None:
        sizes.append(source.size)
        original(body, source, target, per_tensor)

    monkeypatch.setattr(quantisation, "_in_tiles", counted)
    for level in ("O0", "O1", "O3"):
        session = foldline.compile(model("transposed"), options={"oo.level": level}).session()
        del sizes[:]
        for rows in (1, 1, 1, 2, 3):
            session.run(None, {"x": normal(rows, SIZE)})
        assert sizes in ([], [SIZE * SIZE]), level


def test_the_pass_alone_changes_nothing_unless_it_folds():
    kept = foldline.compile(model("DequantizeLinear"), options={"oo.level": "O1"}).module
    before = op_types(kept)
    for each, wanted in ((ReleaseQuantisation(), before), (ReleaseQuantisation(True), ["MatMul"])):
        each.run(PassContext(kept))
        assert op_types(kept) == wanted


def test_a_value_that_is_neither_is_refused():
    with pytest.raises(foldline.InvalidOption, match="valid: fold, keep"):
        foldline.compile(model("transposed"), options={"export.quantisation": "float"})
