"""The first half of the mutants."""

from __future__ import annotations

import pytest

from tests.fuzz.slices import FIRST_HALF, check_slice


@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST_HALF)
def test_compiled_or_refused(first: int) -> None:
    check_slice(first)
