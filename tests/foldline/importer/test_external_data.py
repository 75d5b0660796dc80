"""External data: mapped, not read; nothing outside the model's folder is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import InitializerOp, main_graph
from foldline.exporter import export_model, write_model
from foldline.importer import import_model
from foldline.support.errors import InvalidArgumentError, InvalidModel

DATA = np.arange(600, dtype=np.float32)


def external(location: str, **entries: str) -> ModelProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[600])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, [600])
    node = helper.make_node("Identity", ["w"], ["y"])
    graph = helper.make_graph([node], "g", [], [shape], [tensor])
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def saved(folder: Path, model: ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def weight(module: ModuleOp) -> np.ndarray:
    block = main_graph(module).body.block
    (op,) = [op for op in block.ops if isinstance(op, InitializerOp)]
    return op.value.array  # pyright: ignore


def test_data_is_mapped_not_copied(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    array = weight(import_model(saved(tmp_path, external("w.bin"))))
    np.testing.assert_array_equal(array, DATA)
    base: object = array
    while not isinstance(base, np.memmap) and getattr(base, "base", None) is not None:
        base = base.base  # pyright: ignore
    assert isinstance(base, np.memmap)
    assert not array.flags.writeable


def test_offset_and_length(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"xyz" + DATA.tobytes() + b"tail")
    model = external("sub/w.bin", offset="3", length="2400")
    np.testing.assert_array_equal(weight(import_model(saved(tmp_path, model))), DATA)


def test_references_can_be_kept_or_embedded(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    model = external("w.bin")
    module = import_model(saved(tmp_path, model))
    kept = export_model(module, external="keep")
    assert kept.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)
    embedded = export_model(module)
    assert embedded.graph.initializer[0].raw_data == DATA.tobytes()


def test_data_beside_a_model_given_as_message_is_refused() -> None:
    with pytest.raises(InvalidModel, match="give its path"):
        import_model(external("w.bin"))


@pytest.mark.parametrize("location", ["../w.bin", "a/../../w.bin", "/etc/hostname", "", "a\\b"])
def test_paths_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    with pytest.raises(InvalidModel, match=r"initializer 'w'.*inside the model's folder"):
        import_model(saved(folder, external(location)))


def test_links_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "dir").symlink_to(tmp_path)
    os.link(tmp_path / "w.bin", folder / "hard.bin")
    for location in ("link.bin", "dir/w.bin", "hard.bin"):
        with pytest.raises(InvalidModel, match=r"link|one name"):
            import_model(saved(folder, external(location)))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": "-1"}, "offset is '-1'"),
        ({"offset": "8"}, "ends at byte 2408"),
        ({"length": "100"}, "says 100"),
        ({"colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_bad_entries(tmp_path: Path, entries: dict[str, str], message: str) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    with pytest.raises(InvalidModel, match=message):
        import_model(saved(tmp_path, external("w.bin", **entries)))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"'gone\.bin' cannot be read"):
        import_model(saved(tmp_path, external("gone.bin")))


def test_writing_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    module = import_model(saved(tmp_path, external("w.bin")))
    target = tmp_path / "out" / "model.opt.onnx"
    target.parent.mkdir()
    write_model(module, target, external_data=True)
    files = sorted(path.name for path in target.parent.iterdir())
    assert len(files) == 2
    assert files[0].startswith("model.opt.")
    assert files[0].endswith(".data")
    loaded = onnx.load(target)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(loaded.graph.initializer[0]), DATA)
    onnx.checker.check_model(str(target))


def test_an_existing_output_needs_force(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    path = saved(tmp_path, external("w.bin"))
    module = import_model(path)
    before = path.read_bytes()
    with pytest.raises(InvalidArgumentError, match="force"):
        write_model(module, path)
    assert path.read_bytes() == before
    write_model(module, path, force=True)
    assert path.read_bytes() != before


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.bin").write_bytes(DATA.tobytes())
    module = import_model(saved(tmp_path, external("w.bin")))
    out = tmp_path / "out"
    out.mkdir()

    def broken(*_: object, **__: object) -> Callable[..., None]:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    for beside in (False, True):
        with pytest.raises(OSError, match="disk full"):
            write_model(module, out / "m.onnx", external_data=beside)
        assert list(out.iterdir()) == []
