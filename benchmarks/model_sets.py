"""Where the models of a benchmark come from, with inputs at several settings of their dims.

A folder holds `<identifier>.onnx` files and `inputs.py`, which defines `SETTINGS` (identifier to a
sequence of dims by name, one entry a setting) and `make_inputs(identifier, setting=0, **dims)`,
name to array. A last setting has the sum of all others for each dim.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from benchmarks.common import selected_models
from benchmarks.zoo import Kind, kinds, model_path
from benchmarks.zoo_inputs import make_inputs

Feed: TypeAlias = dict[str, Any]

ZOO_DIMS: tuple[dict[str, int], ...] = (
    {},
    {"N": 2, "H": 256, "W": 192, "S": 17, "T": 9},
    {"N": 3, "H": 288, "W": 416, "S": 9, "T": 5},
)
"""Dims of the zoo's models at each setting; not every model takes all of them."""

QUANTISED = ("Integer", "QLinear", "QuantizeLinear")
"""What is in the names of operators of a quantised model."""

HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


@dataclass(frozen=True)
class ModelSet:
    """Models by identifier."""

    ids: tuple[str, ...]
    path: Callable[[str], Path]
    feeds: Callable[[str], list[Feed]]
    """Inputs at each setting."""
    kind: Callable[[str], Kind]


def model_set(folder: str | None, only: str) -> ModelSet:
    """The models of a folder, or those of the zoo that were fetched; `only` names some of them."""
    return _zoo(only) if folder is None else _of_folder(Path(folder), only)


def _zoo(only: str) -> ModelSet:
    return ModelSet(
        ids=tuple(selected_models(only)),
        path=model_path,
        feeds=lambda name: [make_inputs(name, seed, **d) for seed, d in enumerate(ZOO_DIMS)],
        kind=lambda name: kinds()[name],
    )


def _of_folder(folder: Path, only: str) -> ModelSet:
    def path(name: str) -> Path:
        return folder / f"{name}.onnx"

    def feeds(name: str) -> list[Feed]:
        inputs = _module(folder / "inputs.py")
        settings = inputs.SETTINGS[name]
        sums = {dim: sum(setting[dim] for setting in settings) for dim in settings[0]}
        return [
            *(inputs.make_inputs(name, setting=i) for i in range(len(settings))),
            inputs.make_inputs(name, **sums),
        ]

    def kind(name: str) -> Kind:
        graph = onnx.load(path(name)).graph
        if any(word in node.op_type for node in graph.node for word in QUANTISED):
            return "quantised"
        return "half" if any(t.data_type in HALF for t in graph.initializer) else "float32"

    wanted = [name for name in only.split(",") if name]
    found = wanted or sorted(file.stem for file in folder.glob("*.onnx"))
    return ModelSet(tuple(found), path, feeds, kind)


def _module(path: Path) -> Any:
    """A file of Python as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
