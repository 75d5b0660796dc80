"""fusion: listed groups of operators become single ones."""

from __future__ import annotations

from foldline.stages.stage import Stage

FUSION = Stage(name="fusion", promise="listed groups are single operators")
