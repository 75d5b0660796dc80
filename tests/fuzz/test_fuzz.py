"""Mutants are what their number says, and a campaign sees what is wrong with one."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import campaign
from tests.fuzz.mutations import MUTATIONS, mutant


def test_a_number_is_a_mutant() -> None:
    first = [mutant(number) for number in range(60)]
    assert [mutant(number) for number in range(60)] == first
    assert len({data for _, data in first}) > 55
    words = {word.strip() for name, _ in first for word in name.partition(":")[2].split(",")}
    assert "bytes" in words
    assert len(words & {mutate.__name__ for mutate in MUTATIONS}) > 15


FAULTY = """
import os, sys, time
from tests.fuzz import worker

def attempted(number, data):
    if number == 1:
        while True:
            pass
    if number == 2:
        os.abort()
    if number == 3:
        time.sleep(60)
    if number == 4:
        bytearray(3 << 30)
    return "compiled", ""

worker.attempted, worker.MAX_SECONDS, worker.MAX_WAIT = attempted, 1, 10
worker.main(int(sys.argv[1]), int(sys.argv[2]), lambda number: ("made up", b""))
"""


@pytest.mark.slow
def test_hangs_crashes_and_hunger_are_seen() -> None:
    found = campaign(0, 6, ("-c", FAULTY))
    assert found.outcomes == {"compiled": 2, "fault": 4}
    assert [fault.split()[0] for fault in found.faults] == ["1", "2", "3", "4"]
    hang, crash, wait, hunger = found.faults
    assert "exit -27" in hang
    assert "in attempted" in hang
    assert "exit -6" in crash
    assert "exit -14" in wait
    assert "MemoryError" in hunger
