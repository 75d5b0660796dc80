"""The pipeline: one tuple, read from top to bottom."""

from __future__ import annotations

from foldline.stages.before_fusion import BEFORE_FUSION
from foldline.stages.fusion import FUSION
from foldline.stages.prepare import PREPARE
from foldline.stages.stage import Stage
from foldline.stages.stage1 import STAGE1
from foldline.stages.stage2 import STAGE2
from foldline.support.options import check_scope
from foldline.support.pass_states import pass_states
from foldline.support.suggest import refuse

PIPELINE: tuple[Stage, ...] = (
    PREPARE,
    STAGE1,
    STAGE2,
    BEFORE_FUSION,
    FUSION,
)


def pipeline(level: str = "O3", mode: str = "fast") -> list[str]:
    """The passes that run, as `stage/pass`, in order; those that are opt-in are not among them.

    Raises InvalidOption for a level or mode that does not exist.
    """
    problems: list[str] = []
    said = check_scope({"oo.level": level, "mode": mode}, "pipeline", "graph", problems)
    refuse(problems)
    states = pass_states(said["oo.level"], said["mode"], {}, problems)
    return [
        f"{stage.name}/{placed.run.name}"
        for stage in PIPELINE
        for step in stage.steps
        for placed in step.placed
        if states[placed.run.name].on
    ]
