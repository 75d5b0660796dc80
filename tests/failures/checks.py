"""Whether an optimised model is what a case expects: its structure, and the values it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto

from tests.failures.case import Expected, Feed

Run = Callable[[Feed], Sequence[Any]]


def runtime(model: onnx.ModelProto | Path) -> Run:
    """ONNX Runtime with optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, {k: np.asarray(v) for k, v in feed.items()})


def right_outputs(model: onnx.ModelProto, feeds: Any, expected: Expected) -> list[Sequence[Any]]:
    """The right values for each feed."""
    if expected.same_as_reference:
        return [runtime(model)(feed) for feed in each(feeds)]
    if expected.outputs is None:
        return []
    return [expected.outputs] if isinstance(feeds, dict) else expected.outputs


def each(feeds: Feed | list[Feed]) -> list[Feed]:
    """The feeds as a list."""
    return [feeds] if isinstance(feeds, dict) else feeds


def check_values(
    run: Run, feeds: Any, outputs: Sequence[Sequence[Any]], expected: Expected
) -> None:
    """The outputs of each feed are right."""
    if expected.random is not None:
        _check_random(run, each(feeds)[0], expected.random)
        return
    for feed, right in zip(each(feeds), outputs, strict=True):
        for index, (got, want) in enumerate(zip(run(feed), right, strict=True)):
            _check_tensor(got, np.asarray(want), expected, f"output {index}")


def _check_random(run: Run, feed: Feed, promised: dict[str, Any]) -> None:
    first, again = run(feed), run(feed)
    assert [list(np.shape(value)) for value in first] == [promised["shape"]] * len(first)
    assert not np.array_equal(first[0], again[0]), "both runs draw the same: it was frozen"


def _check_tensor(got: Any, want: np.ndarray, expected: Expected, where: str) -> None:
    assert isinstance(got, np.ndarray | np.generic), f"{where} is {type(got)}"
    assert np.shape(got) == want.shape, where
    if want.dtype.kind in "OUS":
        assert [str(item) for item in np.ravel(got)] == [str(item) for item in want.flat], where
        return
    assert np.asarray(got).dtype.kind == want.dtype.kind, where
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, where)
    else:
        np.testing.assert_allclose(
            np.asarray(got, np.float64),
            want.astype(np.float64),
            rtol=expected.rtol,
            atol=expected.atol,
            err_msg=where,
        )


def check_structure(original: onnx.ModelProto, model: onnx.ModelProto, expected: Expected) -> None:
    """The optimised model keeps what it must, and has lost what it should."""
    assert _names(model.graph.output) == _names(original.graph.output)
    if expected.inputs_kept:
        assert _names(model.graph.input) == _names(original.graph.input)
    left = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
    if expected.max_nodes is not None:
        assert len(left) <= expected.max_nodes, left
    everywhere = set(_operators(model))
    assert everywhere.issuperset(expected.operators_kept or ())
    assert everywhere.isdisjoint(expected.operators_gone or ())
    if expected.max_bytes is not None:
        assert model.ByteSize() <= expected.max_bytes
    if expected.dims_kept:
        _check_dims(original, model)
    if expected.metadata_kept:
        assert _metadata(model) == _metadata(original)


def _names(values: Sequence[onnx.ValueInfoProto]) -> list[str]:
    return [value.name for value in values]


def _operators(model: onnx.ModelProto) -> Iterator[str]:
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        yield from _operators_of(nodes)


def _operators_of(nodes: Sequence[onnx.NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield node.op_type
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _operators_of(graph.node)


def _check_dims(original: onnx.ModelProto, model: onnx.ModelProto) -> None:
    for before, after in zip(original.graph.output, model.graph.output, strict=True):
        dims = zip(before.type.tensor_type.shape.dim, after.type.tensor_type.shape.dim, strict=True)
        assert all(a.dim_param == b.dim_param for a, b in dims), after


def _metadata(model: onnx.ModelProto) -> dict[str, Any]:
    return {
        "ir": model.ir_version,
        "opsets": sorted((row.domain, row.version) for row in model.opset_import),
        "producer": (model.producer_name, model.producer_version),
        "docs": (model.doc_string, model.graph.doc_string),
        "version": (model.domain, model.model_version),
        "properties": sorted((row.key, row.value) for row in model.metadata_props),
    }


def with_big_weights(model: onnx.ModelProto, count: int, folder: Path) -> Path:
    """The model as a file beside a sparse file of so many floats, three of which are not zero."""
    tensor = model.graph.initializer.add(name="big", data_type=TensorProto.FLOAT, dims=[count])
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "big.data"), ("offset", "0"), ("length", str(4 * count))):
        tensor.external_data.add(key=key, value=text)
    with (folder / "big.data").open("wb") as file:
        file.truncate(4 * count)
        for position, number in ((1, 1), (300_000_000, 2), (count - 1, 3)):
            file.seek(4 * position)
            file.write(np.float32(number).tobytes())
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path
