"""Where a stepper stands, as files: the state before the step, and how far the step has come.

state.mlir, tensors.npz   the module before the step
original.mlir             the model as imported
state.json                the place, the options, what passes have said
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

import foldline
from foldline.dialects import load_dialects
from foldline.dialects.onnx.tensor import SideFile
from foldline.dialects.onnx.verifier import verify_model
from foldline.stages.context import PassContext
from foldline.stages.gate import Application
from foldline.stages.observers import TENSORS, load_dump, module_text
from foldline.stages.pipeline import PIPELINE
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import PipelineRun, Place
from foldline.support.errors import InvalidArgumentError, InvalidModel
from foldline.support.options import resolve
from foldline.support.remarks import Remark
from foldline.support.report import PassRow, Report
from foldline.workbench.breakpoints import Breakpoint
from foldline.workbench.stepper import Stepper
from foldline.workbench.stops import Ahead, Stop
from foldline.workbench.why import Past

STATE = "state.json"
MODULES = ("original.mlir", "state.mlir")


def save(stepper: Stepper, folder: Path, *, most_bytes: int | None = None) -> int:
    """Write where a stepper stands to a new or empty folder. Raises InvalidArgumentError.

    Of tensors of more than `most_bytes` only the text is written, which shows the modules but
    cannot be loaded; returns how many bytes were left out.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InvalidArgumentError(f"'{folder}' is not empty")
    folder.mkdir(parents=True, exist_ok=True)
    stop, side = stepper.here, SideFile()
    run = stop.ahead.run
    for name, module in zip(MODULES, (stepper.original, run.context.module), strict=True):
        (folder / name).write_text(module_text(module, side))
    held = sum(tensor.array.nbytes for tensor in side.tensors.values() if not tensor.is_splat)
    if most_bytes is not None and held > most_bytes:
        return held
    side.save(str(folder / TENSORS))
    document = {
        "foldline": foldline.__version__,
        "place": [run.place.stage, run.place.step],
        "done": stop.done,
        "why": stop.why,
        "options": stepper.options,
        "rules": [rule.name for rule in run.context.rules],
        "breakpoints": [[point.kind, point.glob] for point in stepper.breakpoints],
        "remarks": [remark._asdict() for remark in run.report.remarks],
        "rows": [vars(row) for row in run.report.rows],
        "past": [_past_as_json(past) for past in stop.ahead.past],
    }
    # Last: a folder without it is no saved state.
    (folder / STATE).write_text(json.dumps(document, indent=1))
    return 0


def load(folder: Path, rules: Sequence[Transform] = ()) -> Stepper:
    """The stepper that was saved, without the stops before. Raises InvalidModel.

    `rules` must be those of the user that ran then, since a file holds no code. Raises
    InvalidArgumentError for those that are missing.
    """
    try:
        return _restored(folder, rules)
    except InvalidArgumentError:
        raise
    except (OSError, ValueError, KeyError, TypeError, BadZipFile, ParseError) as error:
        raise InvalidModel(f"'{folder}' holds no saved steps: {error}") from error


def _restored(folder: Path, rules: Sequence[Transform]) -> Stepper:
    document: dict[str, Any] = json.loads((folder / STATE).read_text())
    missing = set(document["rules"]) - {rule.name for rule in rules}
    if missing:
        names = ", ".join(sorted(missing))
        raise InvalidArgumentError(f"the rules {names} ran when it was saved; give them too")
    original, module = (_read(folder / name) for name in MODULES)
    context = PassContext(module, resolve(document["options"]), rules=tuple(rules))
    for remark in document["remarks"]:
        context.remarks.record(Remark(**remark))
    report = Report(rows=[PassRow(**row) for row in document["rows"]])
    place = Place(*document["place"])
    context.stage = PIPELINE[place.stage].name
    run = PipelineRun(context, start=place, report=report)
    points = [Breakpoint(*pair) for pair in document["breakpoints"]]
    past = tuple(_past_from_json(**entry) for entry in document["past"])
    stop = Stop(Ahead(run, past=past), document["done"], document["why"])
    return Stepper(original, [stop], points, options=document["options"])


def _past_as_json(past: Past) -> dict[str, Any]:
    change = vars(past.change)
    names = {key: sorted(change[key]) for key in ("touched", "op_types")}
    return {"stage": past.stage, **change, **names}


def _past_from_json(
    stage: str, touched: Sequence[str], op_types: Sequence[str], **change: Any
) -> Past:
    made = Application(**change, touched=frozenset(touched), op_types=frozenset(op_types))
    return Past(stage, made)


def _read(path: Path) -> ModuleOp:
    context = Context()
    load_dialects(context)
    module = load_dump(path, context)
    verify_model(module)
    return module
