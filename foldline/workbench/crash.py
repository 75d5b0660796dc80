"""A compile that failed by Foldline's own fault, as files: the state before the step at fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foldline.importer import Source
from foldline.stages.rewrite.transform import Transform
from foldline.workbench import saved_steps
from foldline.workbench.bisect import Finding, raised_in
from foldline.workbench.caught import Caught
from foldline.workbench.stepper import Stepper
from foldline.workbench.stops import Stop
from foldline.workbench.watching import OutputsDiffer

MOST_BYTES = 100 * 10**6
"""Weights above are not copied: whoever has the model has them."""


def save_failed_step(
    folder: Path,
    error: BaseException,
    source: Source,
    options: Mapping[str, Any],
    rules: Sequence[Transform] = (),
) -> list[str]:
    """Write the state before the step that fails to a new or empty folder; what to say of it.

    The compile is run again up to there, so a compile that goes well costs nothing. The list is
    empty where no step fails. Raises what an import raises.
    """
    stepper = Stepper.of(source, options, rules)
    finding = error.finding if isinstance(error, OutputsDiffer) else _failing(stepper)
    if finding is None:
        return []
    why = f"before {finding.culprit}"
    stepper.stops = [Stop(finding.step, finding.done, why)]
    left_out = saved_steps.save(stepper, folder, most_bytes=MOST_BYTES)
    said = [str(finding)]
    if left_out:
        said.append(f"{left_out / 1e6:.0f} MB of weights are not copied; the model is needed")
    else:
        said.append(f"foldline step --resume .{' --rules …' if rules else ''}")
    return said


def _failing(stepper: Stepper) -> Finding | None:
    here = stepper.here.ahead
    with Caught() as caught:
        while here.due is not None:
            here = here.after()
    return None if caught.error is None else raised_in(here, caught.error)
