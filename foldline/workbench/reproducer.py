"""What is needed to see a fault again, in one folder.

model.onnx    a few nodes that still break
inputs.npz    inputs on which they do
command.txt   what to type there
finding.txt   the pass, the change, the outputs
versions.txt  of what computes; and the files of rules that ran
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.exporter.files import serialised
from foldline.stages.rewrite.transform import Transform
from foldline.support.errors import FoldlineError, InvalidArgumentError
from foldline.support.options import flags_of, pins_input, resolve
from foldline.support.versions import version_lines
from foldline.workbench.bisect import Finding, find_change
from foldline.workbench.comparison import Comparison, session_of
from foldline.workbench.reduce import Reduced, reduce
from foldline.workbench.stepper import Stepper


@dataclass(frozen=True)
class Trial:
    """How a model is compiled and compared."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rules: tuple[Transform, ...] = ()
    rtol: float | None = None

    def finding(
        self, model: ModelProto, inputs: Mapping[str, Any], *, made_up: bool = True
    ) -> Finding | None:
        """What breaks a model, on these inputs and on made-up ones.

        Raises FoldlineError for a model that cannot be imported, or does not run as it is.
        """
        stepper = Stepper.of(model, self.options, self.rules)
        start = stepper.here.ahead
        mode = str(start.run.context.options["mode"])
        compare = Comparison(stepper.original, mode, inputs, self.rtol, made_up=made_up)
        return find_change(start, compare)

    def of_parts(self) -> Trial:
        """For parts of a model: without what pins inputs, since they have inputs of their own."""
        kept = {key: value for key, value in self.options.items() if not pins_input(key)}
        return replace(self, options=kept)


def smallest(
    finding: Finding, original: ModuleOp, feed: Mapping[str, Any], trial: Trial
) -> Reduced | None:
    """A small part of the model in which the same pass breaks the same; None if there is none.

    Parts of the module before the change are tried first, then such of the original.
    """

    def breaks(model: ModelProto, inputs: Mapping[str, Any]) -> bool:
        try:
            found = parts.finding(model, inputs, made_up=False)
        except FoldlineError:
            return False
        return found is not None and is_same(found, finding)

    parts, change = trial.of_parts(), finding.change
    names = sorted({*change.touched, change.node} - {""}) if change is not None else []
    for module in (finding.before, original):
        try:
            model = export_model(module, value_info="all")
            session = session_of(module, "fast")
            values = {**feed, **session.values(feed, session.program.value_names)}
        except FoldlineError:
            continue
        if (found := reduce(model, names, values, breaks)) is not None:
            return found
    return None


def is_same(found: Finding, wanted: Finding) -> bool:
    """Whether two findings are of one fault: the pass, and what it raises if it does."""
    names = [finding.change and finding.change.pass_name for finding in (found, wanted)]
    return names[0] == names[1] and type(found.error) is type(wanted.error)


def write_folder(
    folder: Path, reduced: Reduced, finding: Finding, trial: Trial, rules: Sequence[str]
) -> None:
    """Write a reproducer to a new or empty folder; `rules` are files and modules of rules.

    Raises InvalidArgumentError for a folder that is not empty.
    """
    from foldline.cli.arrays import save_npz

    refuse_full(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(serialised(reduced.model))
    save_npz(str(folder / "inputs.npz"), reduced.inputs)
    flags = [*_carried(rules, folder), *flags_of(resolve(trial.of_parts().options).said)]
    flags += [] if trial.rtol is None else [f"--rtol={trial.rtol}"]
    command = ["foldline", "bisect", "model.onnx", "--inputs", "inputs.npz", *flags]
    (folder / "command.txt").write_text(f"{shlex.join(command)}\n")
    (folder / "finding.txt").write_text(f"{finding}\n")
    (folder / "versions.txt").write_text("\n".join(version_lines()) + "\n")


def refuse_full(folder: Path) -> None:
    """Raise InvalidArgumentError for a folder that holds something."""
    if folder.exists() and any(folder.iterdir()):
        raise InvalidArgumentError(f"'{folder}' is not empty")


def _carried(rules: Sequence[str], folder: Path) -> Iterator[str]:
    """Flags for the rules; files come into the folder, modules and installed rules stay."""
    for number, source in enumerate(rules):
        path = Path(source)
        if path.suffix in (".py", ".yaml", ".yml"):
            name = path.name if not (folder / path.name).exists() else f"{number}-{path.name}"
            copyfile(path, folder / name)
            source = name
        yield f"--rules={source}"
