"""Remarks: what a pass did, declined to do, or found, and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["applied", "declined", "note"]

_log = logging.getLogger("foldline.remarks")


class Remark(NamedTuple):
    """One remark."""

    kind: Kind
    """`applied`: a change was made. `declined`: a candidate was left alone. `note`: a finding."""
    stage: str
    """The stage, or '' outside of stages."""
    pass_name: str
    node: str
    """Name of the node in the source model, or of its first output, or ''."""
    op_type: str
    """`onnx.Conv`, or '' for a remark on the whole model."""
    message: str
    """What was done or why it was not, with the values that decided it."""

    def __str__(self) -> str:
        where = f"{self.stage}/{self.pass_name}" if self.stage else self.pass_name
        op = f" {self.op_type}" if self.op_type else ""
        node = f" '{self.node}'" if self.node else ""
        return f"{where}: {self.kind}{op}{node}: {self.message}"


class Remarks:
    """The remarks of a compile, in order; one that is made again is held once."""

    def __init__(self) -> None:
        self._held: dict[Remark, None] = {}
        self._is_logged = _log.isEnabledFor(logging.DEBUG)

    def record(self, remark: Remark) -> None:
        """Hold a remark, and log it where `foldline.remarks` is on."""
        if remark not in self._held:
            self._held[remark] = None
            if self._is_logged:
                _log.debug("%s", remark)

    def copied(self) -> Remarks:
        """Another holder of the same remarks."""
        copy = Remarks()
        copy._held = dict(self._held)
        return copy

    def __iter__(self) -> Iterator[Remark]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
