"""Values on Foldline's own kernels, fast mode, nothing optimised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.exporter import export_model
from foldline.stages.pass_base import Pass
from tests.stages.check import Array, run_pass


def own_values(module: ModuleOp, feed: Mapping[str, Array]) -> list[Array]:
    """What the kernels of the fast grade compute for a module."""
    model = export_model(module)
    session = foldline.compile(model, options={"oo.level": "O0"}).session()
    return session.run(None, dict(feed))


def check_own_values(given: Pass, module: ModuleOp, feed: Mapping[str, Array]) -> None:
    """The module computes the same bits after the pass, and the pass changes it."""
    before = own_values(module.clone(), feed)
    assert run_pass(given, module).rewriter.changes
    for old, new in zip(before, own_values(module, feed), strict=True):
        assert old.dtype == new.dtype
        assert old.shape == new.shape
        np.testing.assert_array_equal(old.view(np.uint8), new.view(np.uint8))
