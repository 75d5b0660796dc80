"""What is known of every pass before any is loaded: name, level, switch, help.

Pass classes refer to a row (`INFO = PASSES["constant-folding"]`); options, command-line flags,
the YAML schema and `docs/passes.md` are made from the table. Order of running is not here: it is
the position in the stages' tuples.
"""

from __future__ import annotations

from foldline.support import fusion_rows, pass_rows
from foldline.support.pass_info import LEVELS, STAGES, Level, PassInfo

__all__ = ["LEVELS", "PASSES", "STAGES", "Level", "PassInfo"]


PASSES: dict[str, PassInfo] = {row.name: row for row in (*pass_rows.ROWS, *fusion_rows.ROWS)}
"""Every pass by name."""
