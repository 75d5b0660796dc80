from itertools import pairwise

import numpy as np
import onnx
import pytest

import foldline
from benchmarks.common import ort_session
from benchmarks.synthetic import SYNTHETIC, bench_inputs, bench_models, bench_path
from tests.zoo.limits import worst_error


def test_the_chain_is_of_500_nodes_each_of_which_feeds_the_next():
    model, feed = SYNTHETIC["chain_500"]()
    onnx.checker.check_model(model, full_check=True)
    nodes = model.graph.node
    assert len(nodes) == 500
    assert all(b.input[0] == a.output[0] for a, b in pairwise(nodes))
    assert {node.op_type for node in nodes} == {"Add", "Sub", "Mul", "Relu", "Sigmoid"}
    assert feed["v"].shape == (16,)


def test_foldline_and_onnxruntime_agree_on_the_chain():
    pytest.importorskip("onnxruntime")
    model, feed = SYNTHETIC["chain_500"]()
    session = foldline.compile(model, options={"oo.level": "O3"}).session(threads=1)
    peer = ort_session(model.SerializeToString(), "all")
    expected = peer.run(None, feed)
    assert len(np.unique(expected[0])) > 200
    for _ in range(3):
        assert worst_error(session.run(None, feed), expected) < 1e-5


def test_synthetic_models_are_written_and_named_like_those_of_the_zoo(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.synthetic.RESULTS", tmp_path)
    assert bench_models("chain_500") == ["chain_500"]
    assert bench_path("chain_500") == tmp_path / "chain_500.onnx"
    assert len(onnx.load(bench_path("chain_500")).graph.node) == 500
    assert list(bench_inputs("chain_500")) == ["v"]
