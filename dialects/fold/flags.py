"""What users and passes say about the folding of an operation, and what folding leaves behind."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from foldline.dialects.onnx.text import TextAttr, TextsAttr

KEEP = "fold.keep"
"""The user says: do not fold."""
NO_NEED = "fold.no_need"
"""A pass says: do not fold, with the reason."""
FROM_FOLDING = "fold.from_folding"
"""Names of the nodes that a constant was folded from."""
REPLACED = "fold.replaced"
"""Names of the nodes in whose place a rule put the operation."""
INSERTED = "fold.inserted"
"""The operation was made by a pass, it stands in no model."""


def keep(op: Operation) -> None:
    """Say for the user that an operation is not to be folded."""
    op.attributes[KEEP] = UnitAttr()


def is_kept(op: Operation) -> bool:
    """Whether the user says not to fold."""
    return KEEP in op.attributes


def set_no_need(op: Operation, reason: str) -> None:
    """Say for a pass that an operation is not to be folded, and why."""
    op.attributes[NO_NEED] = TextAttr(reason)


def no_need_reason(op: Operation) -> str | None:
    """Why a pass says not to fold; None if none does."""
    reason = op.attributes.get(NO_NEED)
    return reason.data if isinstance(reason, TextAttr) else None


def clear_no_need(op: Operation) -> None:
    """Let an operation fold again."""
    op.attributes.pop(NO_NEED, None)


def set_from_folding(op: Operation, nodes: Iterable[str]) -> None:
    """Note the names of the nodes that a constant was folded from."""
    op.attributes[FROM_FOLDING] = TextsAttr(tuple(nodes))


def folded_nodes(op: Operation) -> tuple[str, ...] | None:
    """Names of the nodes that a constant was folded from; None if it was not."""
    nodes = op.attributes.get(FROM_FOLDING)
    return nodes.data if isinstance(nodes, TextsAttr) else None


def set_replaced(op: Operation, nodes: Iterable[str]) -> None:
    """Note the names of the nodes in whose place an operation stands."""
    op.attributes[REPLACED] = TextsAttr(tuple(nodes))


def replaced_nodes(op: Operation) -> tuple[str, ...]:
    """Names of the nodes in whose place an operation stands; none if it is of the model."""
    nodes = op.attributes.get(REPLACED)
    return nodes.data if isinstance(nodes, TextsAttr) else ()


def mark_inserted(op: Operation) -> None:
    """Note that a pass made an operation."""
    op.attributes[INSERTED] = UnitAttr()


def is_inserted(op: Operation) -> bool:
    """Whether a pass made an operation."""
    return INSERTED in op.attributes
