"""What stock xDSL tools see of Foldline: its dialects and passes (entry point `xdsl.universe`)."""

from __future__ import annotations

from xdsl.universe import Universe

from foldline.dialects import DIALECTS
from foldline.stages.passes import ALL_PASSES

UNIVERSE = Universe(
    all_dialects={dialect.name: lambda dialect=dialect: dialect for dialect in DIALECTS},
    all_passes={cls.name: lambda cls=cls: cls for cls in ALL_PASSES},
)
