"""The fused dialect: single operators for groups that fusion forms and kernels compute at once."""

from __future__ import annotations

from xdsl.ir import Dialect

FUSED = Dialect("fused", [], [])
