"""10,000 mutants, in slices that two files of tests share: two workers then try them at once.

`python -m tests.fuzz.campaign FIRST END` tries others; what they find gets a test in
`test_found.py`.
"""

from __future__ import annotations

from tests.fuzz.campaign import campaign

SLICE, COUNT = 500, 10_000
FIRST_HALF = range(0, COUNT // 2, SLICE)
SECOND_HALF = range(COUNT // 2, COUNT, SLICE)


def check_slice(first: int) -> None:
    """Each mutant is compiled or refused with a FoldlineError, in bounded time and memory."""
    found = campaign(first, first + SLICE)
    assert not found.faults, "\n\n".join(found.faults)
    assert found.outcomes.total() == SLICE
    assert found.outcomes["compiled"] > SLICE // 5, "mutants are too wild to get anywhere"
    assert found.outcomes["refused"] > SLICE // 5, "mutants are too tame"
