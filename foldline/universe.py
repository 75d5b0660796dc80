"""What stock xDSL tools see of Foldline: its dialects and passes (entry point `xdsl.universe`)."""

from __future__ import annotations

from xdsl.dialects.builtin import Builtin
from xdsl.universe import Universe

from foldline.dialects import DIALECTS
from foldline.stages.passes import ALL_PASSES

# xDSL refuses a name that two universes define; builtin is its own.
_OWN = [dialect for dialect in DIALECTS if dialect is not Builtin]

UNIVERSE = Universe(
    all_dialects={dialect.name: lambda dialect=dialect: dialect for dialect in _OWN},
    all_passes={cls.name: lambda cls=cls: cls for cls in ALL_PASSES},
)
