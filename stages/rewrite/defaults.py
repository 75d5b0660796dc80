"""The transforms that run unless others are named."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from foldline.stages.fusion import FUSION
from foldline.stages.rewrite.stage_step import transforms_of
from foldline.stages.rewrite.transform import Transform


@dataclass(frozen=True)
class DefaultsOptions:
    """What the default transforms are made of."""


def defaults(options: DefaultsOptions | None = None) -> list[Transform]:
    """The transforms of the fusion stage that are on by default, in the order of running."""
    del options
    placed = [entry.run for step in FUSION.steps for entry in step.placed]
    return transforms_of([a_pass for a_pass in placed if not a_pass.INFO.opt_in])


def default_transforms(module: ModuleOp, options: DefaultsOptions | None = None) -> list[Transform]:
    """What runs on one graph: it may hang on how the graph was made."""
    del module
    return defaults(options)
