"""The plan dialect as text, with the places of a plan for given shapes where there is one."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from foldline.dialects.onnx.attributes import TextsAttr
from foldline.dialects.plan import CallOp, ProgramOp
from foldline.lowering.planned_call import PlannedCall
from foldline.lowering.routine import Routine
from foldline.lowering.specialise import Plan


def plan_text(source: ProgramOp, routine: Routine, plan: Plan | None) -> str:
    """The text of a program; with a plan, every call says where its results are."""
    return str(source if plan is None else annotated(source, routine, plan))


def annotated(source: ProgramOp, routine: Routine, plan: Plan) -> ProgramOp:
    """A copy of a program whose calls have `places`, with the size of the arena."""
    program = source.clone()
    program.properties["arena_bytes"] = IntegerAttr(plan.arena_bytes, i64)
    planned = {id(entry.origin or entry.call): entry for entry in plan.calls}
    ops = [op for op in program.body.block.ops if isinstance(op, CallOp) and not op.is_once]
    for op, call in zip(ops, routine.calls, strict=True):
        entry = planned.get(id(call))
        op.properties["places"] = TextsAttr(
            ("known",) * len(op.results) if entry is None else _places(entry)
        )
    return program


def _places(entry: PlannedCall) -> tuple[str, ...]:
    others = ("fresh",) * (len(entry.call.results) - 1)
    match entry.kind:
        case "view":
            return ("view",) * len(entry.call.results)
        case "copy" | "out" if entry.place is not None:
            word = "arena" if entry.kind == "out" else "view of arena"
            return (f"{word} {entry.place.buffer.offset}", *others)
        case _:
            return (entry.kind, *others)
