"""The fold dialect: facts about values, and flags that steer folding. It has no operations."""

from __future__ import annotations

from xdsl.ir import Dialect

from foldline.dialects.fold.flags import (
    FROM_FOLDING,
    INSERTED,
    KEEP,
    NO_NEED,
    clear_no_need,
    folded_nodes,
    is_inserted,
    is_kept,
    keep,
    mark_inserted,
    no_need_reason,
    set_from_folding,
    set_no_need,
)
from foldline.dialects.fold.known import (
    Fact,
    FullyKnown,
    KnownAttr,
    PartlyKnown,
    drop_facts,
    get_fact,
    set_fact,
)

FOLD = Dialect("fold", [], [KnownAttr])

__all__ = [
    "FOLD",
    "FROM_FOLDING",
    "INSERTED",
    "KEEP",
    "NO_NEED",
    "Fact",
    "FullyKnown",
    "KnownAttr",
    "PartlyKnown",
    "clear_no_need",
    "drop_facts",
    "folded_nodes",
    "get_fact",
    "is_inserted",
    "is_kept",
    "keep",
    "mark_inserted",
    "no_need_reason",
    "set_fact",
    "set_from_folding",
    "set_no_need",
]
