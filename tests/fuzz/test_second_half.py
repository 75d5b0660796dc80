"""The second half of the mutants."""

from __future__ import annotations

import pytest

from tests.fuzz.slices import SECOND_HALF, check_slice


@pytest.mark.slow
@pytest.mark.parametrize("first", SECOND_HALF)
def test_compiled_or_refused(first: int) -> None:
    check_slice(first)
