"""What a caller is given is the caller's alone, whatever kind of value it is."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper

import foldline
from foldline.lowering.outputs import copied, handing_out


def test_arrays_are_copied_and_scalars_become_arrays() -> None:
    array = np.arange(6).reshape(2, 3).T
    copy = copied(array)
    assert copy.flags.c_contiguous
    assert copy.flags.writeable
    assert not np.shares_memory(copy, array)
    assert isinstance(copied(np.float32(1)), np.ndarray)
    assert copied(None) is None


def test_sequences_and_maps_are_copied_with_their_elements() -> None:
    array = np.zeros(2)
    sequence, map_ = [array], {"a": array, "b": 0.5}
    for copy in (copied(sequence)[0], copied(map_)["a"]):
        assert not np.shares_memory(copy, array)
    assert copied(map_)["b"] == 0.5
    assert isinstance(copied([{1: 2.0}])[0], dict)


def _zipped() -> ModelProto:
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        )
    )
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[4, 7])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
        [helper.make_value_info("y", maps)],
    )
    imports = [helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports)


def test_a_sequence_of_maps_leaves_a_session_as_it_is() -> None:
    session = foldline.compile(_zipped()).session()
    x = np.float32([[0.25, 0.75], [1, 0]])
    for _ in range(3):
        assert session.run(None, {"x": x}) == [[{4: 0.25, 7: 0.75}, {4: 1.0, 7: 0.0}]]


def test_only_what_is_fresh_leaves_as_it_is_and_once() -> None:
    array, view, maps = np.zeros(2), np.zeros(4)[:2], [{1: 2.0}]
    frame = [array, view, maps, array]
    fresh = handing_out((0, 1, 2), (True, True, True), (2, 0, 2, 1, 0))(frame)
    assert fresh[0] is maps
    assert fresh[1] is array
    for copy, value in zip(fresh[2:], (maps, view, array), strict=True):
        assert copy is not value
    assert fresh[2] == maps
    assert fresh[2][0] is not maps[0]
    held = handing_out((0, 2), (False, False))(frame)
    assert held[0] is not array
    assert held[1] == maps
    assert held[1][0] is not maps[0]


def test_a_sequence_of_maps_that_is_asked_for_twice_is_two() -> None:
    session = foldline.compile(_zipped()).session()
    x = np.float32([[0.25, 0.75], [1, 0]])
    for _ in range(4):
        y, z = session.run(["y", "y"], {"x": x})
        assert y == z == [{4: 0.25, 7: 0.75}, {4: 1.0, 7: 0.0}]
        assert y is not z
        assert y[0] is not z[0]
        y[0][4], z[1][7] = 5.0, 6.0


def test_sequences_of_maps_of_scalars_are_copied_map_by_map() -> None:
    maps: list[dict[int, object]] = [{1: 2.0, 3: 4}, {1: "a"}, {}]
    copies = copied(maps)
    assert copies == maps
    assert all(copy is not one for copy, one in zip(copies, maps, strict=True))
    array = np.zeros(2)
    mixed = copied([{1: 2.0}, {1: array}])
    assert mixed[0] == {1: 2.0}
    assert not np.shares_memory(mixed[1][1], array)
    assert copied([]) == []
