"""Graph transforms: the built-in ones, and how to make more.

    from foldline import transforms

    @transforms.traced
    def swish(op, x):
        return op.Mul(x, op.Sigmoid(x))

    rule = transforms.rewrite("my-swish", swish, lambda build, match: build.Swish(match["x"]))

Each built-in transform has a factory named as the transform, with underscores:
`transforms.conv_batchnorm_fold()`. It takes the options of the pass as keywords. The names are in
`BUILT_IN`; `docs/passes.md` says what each does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from foldline.stages.fusion import FUSION
from foldline.stages.passes import ALL_PASSES
from foldline.stages.pipeline import pipeline
from foldline.stages.rewrite.adapters import from_pdl, from_xdsl
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.defaults import DefaultsOptions, defaults
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.pattern import MAX_OPTIONAL_PATTERN_NODES, Pattern
from foldline.stages.rewrite.rule_pass import as_transform
from foldline.stages.rewrite.rules_as_data import load_rules, rules_from
from foldline.stages.rewrite.slots import ANY, PatternNode
from foldline.stages.rewrite.tracing import traced
from foldline.stages.rewrite.transform import Transform, rewrite
from foldline.support.rewrite_report import OptimizeReport, RewriteRow

__all__ = [
    "ANY",
    "BUILT_IN",
    "MAX_OPTIONAL_PATTERN_NODES",
    "DefaultsOptions",
    "Match",
    "OptimizeOptions",
    "OptimizeReport",
    "Pattern",
    "PatternNode",
    "RewriteRow",
    "RuleBuilder",
    "Transform",
    "defaults",
    "from_pdl",
    "from_xdsl",
    "load_rules",
    "pipeline",
    "rewrite",
    "rules_from",
    "traced",
]

_CLASSES = {cls.name.replace("-", "_"): cls for cls in ALL_PASSES}

BUILT_IN: tuple[str, ...] = tuple(
    dict.fromkeys(
        placed.run.name.replace("-", "_") for step in FUSION.steps for placed in step.placed
    )
)
"""Names of the factories, in the order in which their transforms run."""


@cache
def _plain(name: str) -> Transform:
    return as_transform(_CLASSES[name]())


def _make(name: str, **options: Any) -> Transform:
    """The built-in transform; of the same options, the same one."""
    return as_transform(_CLASSES[name](**options)) if options else _plain(name)


def __getattr__(name: str) -> Callable[..., Transform]:
    if name not in BUILT_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(_make, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *BUILT_IN])
