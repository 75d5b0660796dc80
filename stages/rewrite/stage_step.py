"""The rewriting step of a stage: one optimisation, of passes and of the user's rules."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import PassCost
from foldline.stages.pass_base import Pass
from foldline.stages.rewrite.optimize import MAX_ITERATIONS, run_transforms
from foldline.stages.rewrite.rule_pass import as_transform
from foldline.stages.rewrite.transform import Transform


def run_rewriting(context: PassContext, passes: Sequence[Pass]) -> list[PassCost]:
    """Run passes as transforms, the user's rules after them unless they say otherwise."""
    report = run_transforms(context, [*transforms_of(passes), *context.rules])
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


def transforms_of(passes: Sequence[Pass]) -> list[Transform]:
    """Passes as transforms; one that stands in several places is numbered from the second on."""
    found: list[Transform] = []
    seen: dict[str, int] = {}
    for a_pass in passes:
        seen[a_pass.name] = seen.get(a_pass.name, 0) + 1
        again = f"{a_pass.name} ({seen[a_pass.name]})" if seen[a_pass.name] > 1 else ""
        found.append(as_transform(a_pass, again))
    return found
