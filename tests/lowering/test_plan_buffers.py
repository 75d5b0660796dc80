from __future__ import annotations

import random

from foldline.lowering.plan_buffers import ALIGNMENT, Buffer, place


def _overlap(a: Buffer, b: Buffer) -> bool:
    in_time = a.start <= b.end and b.start <= a.end
    in_space = a.offset < b.offset + b.size and b.offset < a.offset + a.size
    return in_time and in_space


def test_no_two_living_buffers_overlap() -> None:
    generator = random.Random(7)
    for _ in range(30):
        buffers: list[Buffer] = []
        for _ in range(60):
            start = generator.randrange(50)
            end = start + generator.randrange(12)
            buffers.append(Buffer(start, end, generator.choice([0, 1, 63, 64, 65, 4000])))
        size = place(buffers)
        living = [b for b in buffers if b.size]
        assert all(b.offset % ALIGNMENT == 0 and 0 <= b.offset <= size - b.size for b in living)
        for index, one in enumerate(living):
            assert not any(_overlap(one, other) for other in living[index + 1 :])


def test_a_chain_takes_two_buffers() -> None:
    buffers = [Buffer(i, i + 1, 100) for i in range(50)]
    assert place(buffers) == 2 * 128


def test_best_fit_takes_the_smallest_hole() -> None:
    large, wall, small, top = (
        Buffer(0, 0, 512),
        Buffer(0, 9, 64),
        Buffer(0, 0, 128),
        Buffer(0, 9, 64),
    )
    new = Buffer(1, 9, 100)
    place([large, wall, small, top, new])
    assert new.offset == small.offset


def test_freed_neighbours_join() -> None:
    parts = [Buffer(0, 0, 64) for _ in range(4)]
    whole = Buffer(1, 1, 256)
    assert place([*parts, whole]) == 256
    assert whole.offset == 0


def test_the_last_hole_grows_instead_of_being_left() -> None:
    assert place([Buffer(0, 0, 64), Buffer(1, 1, 640)]) == 640


def test_nothing_takes_nothing() -> None:
    assert place([]) == 0
    assert place([Buffer(0, 5, 0)]) == 0
