"""The rewriting step of a stage: one optimisation, of passes and of the user's rules."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.stages.context import EVERYTHING, PassContext
from foldline.stages.driver.traversal import PassCost
from foldline.stages.pass_base import Pass
from foldline.stages.rewrite.half_values import narrow_value
from foldline.stages.rewrite.optimize import MAX_ITERATIONS, run_transforms
from foldline.stages.rewrite.rule_pass import as_transform
from foldline.stages.rewrite.transform import Transform
from foldline.support.remarks import Remark


def run_rewriting(context: PassContext, passes: Sequence[Pass]) -> list[PassCost]:
    """Run passes as transforms, and the user's rules among them.

    With `fusion.half: skip-model`, a model of narrow values is shown to the user's rules only.
    """
    if _is_skipped(context):
        passes = ()
    taking = (place for place, a_pass in enumerate(passes) if a_pass.TAKES_THE_REST)
    rules = allowed(context, context.rules)
    report = run_transforms(
        context, placed(transforms_of(passes), rules, next(taking, len(passes)))
    )
    context.rewrites.append(report)
    if not report.converged:
        names = ", ".join(row.name for row in report.rows if row.applications == report.iterations)
        context.reached(
            f"transforms go on changing the model after {MAX_ITERATIONS} turns: {names}"
        )
    return [
        PassCost(row.name, row.seconds, row.nodes_added - row.nodes_removed, row.applications)
        for row in report.rows
    ]


def _is_skipped(context: PassContext) -> bool:
    """Whether fusion leaves the model alone for its narrow values; with a note."""
    if context.options is EVERYTHING or context.options["fusion.half"] != "skip-model":
        return False
    narrow = narrow_value(context.module)
    if narrow is None:
        return False
    why = f"no fusion: fusion.half is skip-model, and the model holds values of {narrow}"
    context.remarks.record(Remark("note", context.stage, "", "", "", why))
    return True


def transforms_of(passes: Sequence[Pass]) -> list[Transform]:
    """Passes as transforms; one that stands in several places is numbered from the second on."""
    found: list[Transform] = []
    seen: dict[str, int] = {}
    for a_pass in passes:
        seen[a_pass.name] = seen.get(a_pass.name, 0) + 1
        again = f"{a_pass.name} ({seen[a_pass.name]})" if seen[a_pass.name] > 1 else ""
        found.append(as_transform(a_pass, again))
    return found


def placed(
    built_in: Sequence[Transform], rules: Sequence[Transform], otherwise: int | None = None
) -> list[Transform]:
    """The user's rules among built-in transforms: behind the last that they run after.

    Rules that run after none of them come before the transform at `otherwise`, by default last. The
    order in which the rules were given is kept.
    """
    ends = {transform.name: place for place, transform in enumerate(built_in, 1)}
    before: dict[str, int] = {}
    for rule in rules:
        known = [ends.get(name, before.get(name)) for name in rule.runs_after]
        after = [place for place in known if place is not None]
        otherwise = len(built_in) if otherwise is None else otherwise
        before[rule.name] = max(after, default=otherwise)
    found: list[Transform] = []
    for place in range(len(built_in) + 1):
        found += [rule for rule in rules if before[rule.name] == place]
        found += built_in[place : place + 1]
    return found


def allowed(context: PassContext, transforms: Sequence[Transform]) -> list[Transform]:
    """The transforms that may run: in exact mode those that preserve bits; a note on each other."""
    if context.options is EVERYTHING or context.options["mode"] != "exact":
        return list(transforms)
    why = "not run: exact mode runs only transforms that preserve bits"
    for transform in transforms:
        if not transform.preserves_bits:
            context.remarks.record(Remark("note", context.stage, transform.name, "", "", why))
    return [transform for transform in transforms if transform.preserves_bits]
