"""The transforms that run unless others are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.types import static_shape
from foldline.stages.context import PassOptions
from foldline.stages.fusion import FUSION
from foldline.stages.pass_base import Pass
from foldline.stages.passes.fusion.drop_boundary_permutes import DropBoundaryPermutes
from foldline.stages.passes.shapes.shape_fixation import ShapeFixation
from foldline.stages.passes.shapes.specialize_shapes import SpecializeShapes
from foldline.stages.rewrite.stage_step import transforms_of
from foldline.stages.rewrite.transform import Transform

Sizes = Mapping[str, int | Sequence[int | None]]


@dataclass(frozen=True)
class DefaultsOptions:
    """What the default transforms are made of."""

    specialize: Sizes = field(default_factory=lambda: MappingProxyType({}))
    """Numbers for sizes by name, shapes of inputs by name; see specialize-shapes."""
    shape_fixation: bool = False
    """Fold what hangs on shapes only, though no number is given."""
    channels_last_inputs: bool = False
    """Inputs lose the Transpose that reads them; their layout changes."""
    channels_last_outputs: bool = False
    """Outputs lose the Transpose that makes them; their layout changes."""


def defaults(options: DefaultsOptions | None = None) -> list[Transform]:
    """The transforms of the fusion stage that are on by default, in the order of running.

    Those that fix shapes join if `specialize` or `shape_fixation` asks for them, that which changes
    layouts if a channels-last option does.
    """
    asked = DefaultsOptions() if options is None else options
    return transforms_of(_passes(asked, lambda a_pass: not a_pass.INFO.opt_in))


def default_transforms(
    module: ModuleOp, options: PassOptions, asked: DefaultsOptions | None = None
) -> list[Transform]:
    """What runs on one graph: shapes are fixed as well where sizes of inputs are open.

    Passes that the options of the graph turn off are not among them.
    """
    asked = DefaultsOptions() if asked is None else asked
    arguments = main_graph(module).body.block.args
    if any(static_shape(argument.type) is None for argument in arguments):
        asked = replace(asked, shape_fixation=True)
    passes = _passes(asked, lambda a_pass: options.enabled(a_pass.name))
    return transforms_of([a_pass.configured(options) for a_pass in passes])


def _passes(asked: DefaultsOptions, is_on: Callable[[Pass], bool]) -> list[Pass]:
    """The passes of the fusion stage that are on, or that the options ask for."""
    placed = [entry.run for step in FUSION.steps for entry in step.placed]
    joining = _joining(asked)
    return [joining.get(p.name, p) for p in placed if p.name in joining or is_on(p)]


def _joining(asked: DefaultsOptions) -> dict[str, Pass]:
    """Opt-in passes that the options ask for."""
    found: list[Pass] = []
    if asked.specialize or asked.shape_fixation:
        sizes: Any = asked.specialize
        found += [SpecializeShapes(sizes=sizes), ShapeFixation()]
    if asked.channels_last_inputs or asked.channels_last_outputs:
        found.append(DropBoundaryPermutes(asked.channels_last_inputs, asked.channels_last_outputs))
    return {a_pass.name: a_pass for a_pass in found}
