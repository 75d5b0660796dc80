"""What is known of every pass before any is loaded: name, level, switch, help.

Pass classes refer to a row (`INFO = PASSES["constant-folding"]`); options, command-line flags,
the YAML schema and `docs/passes.md` are made from the table. Order of running is not here: it is
the position in the stages' tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["O0", "O1", "O2", "O3"]
LEVELS: tuple[Level, ...] = ("O0", "O1", "O2", "O3")

STAGES = ("prepare", "stage1", "stage2", "before_fusion", "fusion")
"""Names of the stages, in their order."""


@dataclass(frozen=True)
class PassInfo:
    """One pass, as data."""

    name: str
    """Kebab-case: also its file, class, flag and test."""
    level: Literal["O1", "O2", "O3"]
    """The lowest `oo.level` at which it runs by itself."""
    switch: str
    """Key of the option that turns it on and off together with others, or ''."""
    preserves_bits: bool
    """Outputs are the same bit for bit with and without it; exact mode runs no others."""
    opt_in: bool
    """Runs only when named by `passes.enable`, whatever the level."""
    runs_after: tuple[str, ...]
    """Passes whose work it builds on: they come earlier, and are on whenever it is enabled."""
    help: str
    """One sentence for users."""
    required: bool = False
    """The stages rely on it: from its level on it cannot be disabled."""


_ROWS = (
    PassInfo(
        name="infer-shapes",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Give every value the best element type and shape that inference can find.",
        required=True,
    ),
    PassInfo(
        name="constant-folding",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Compute operators whose inputs are all constant, with the kernels that run models.",
    ),
    PassInfo(
        name="eliminate-identity",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Remove operators that hand their input on unchanged.",
    ),
    PassInfo(
        name="prune",
        level="O1",
        switch="oo.deadCodeElimination",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Remove operators and constants that no output depends on.",
    ),
    PassInfo(
        name="merge-equal-constants",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Keep one of several constants that hold the same type and the same bits.",
    ),
)

PASSES: dict[str, PassInfo] = {row.name: row for row in _ROWS}
"""Every pass by name."""
