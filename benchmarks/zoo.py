"""The manifest `zoo.yaml` as data: which models there are, and where their files stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "zoo"

Kind = Literal["float32", "half", "quantised"]


@dataclass(frozen=True)
class WheelModel:
    """A model file that ships inside a Python wheel."""

    id: str
    path: str
    """Where it is in the wheel."""
    sha256: str
    kind: Kind = "float32"


@dataclass(frozen=True)
class DerivedModel:
    """A model made from another one of the zoo."""

    id: str
    source: str
    by: Literal["float16", "qdq"]
    kind: Kind


def wheels() -> dict[str, tuple[WheelModel, ...]]:
    """Requirement (`name==version`) to the models that its wheel holds."""
    return {
        wheel["package"]: tuple(WheelModel(**row) for row in wheel["files"])
        for wheel in _manifest()["wheels"]
    }


def derived() -> tuple[DerivedModel, ...]:
    """The models that `derive_zoo.py` makes, in order."""
    return tuple(DerivedModel(**row) for row in _manifest()["derived"])


def kinds() -> dict[str, Kind]:
    """Identifier to kind, of every model of the zoo in the order of the manifest."""
    fetched = [model for models in wheels().values() for model in models]
    return {model.id: model.kind for model in (*fetched, *derived())}


def model_path(model_id: str) -> Path:
    """The file of one model; `make zoo` puts it there."""
    return FOLDER / f"{model_id}.onnx"


def _manifest() -> dict[str, Any]:
    return yaml.safe_load((Path(__file__).parent / "zoo.yaml").read_text())
