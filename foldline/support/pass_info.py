"""What is known of a pass before it is loaded."""

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


def row(
    name: str,
    level: Literal["O1", "O2", "O3"],
    help: str,
    *,
    switch: str = "",
    moves_bits: bool = False,
    opt_in: bool = False,
    after: tuple[str, ...] = (),
    required: bool = False,
) -> PassInfo:
    """A pass that has nothing special about it but what is said."""
    return PassInfo(name, level, switch, not moves_bits, opt_in, after, help, required)
