from __future__ import annotations

import os

import pytest

from foldline.support.option_table import OPTIONS, SHAPE_KEY, usable_cores
from foldline.support.passes import LEVELS


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("key", [key for key in OPTIONS if key != SHAPE_KEY])
def test_default_is_valid(key: str, level: str) -> None:
    default = OPTIONS[key].default(level)
    assert OPTIONS[key].kind.check(default) == default


def test_defaults_by_level() -> None:
    assert [OPTIONS["oo.constantFolding"].default(x) for x in LEVELS] == [False, True, True, True]
    assert [OPTIONS["oo.deadCodeElimination"].default(x) for x in LEVELS][:2] == [False, True]
    assert [OPTIONS["export.valueInfo"].default(x) for x in LEVELS] == ["keep", "all", "all", "all"]
    assert OPTIONS["fold.maxBytes"].default("O3") == 65536


@pytest.mark.parametrize(
    ("key", "underscored"),
    [
        ("oo.level", "oo_level"),
        ("oo.constantFolding", "oo_constant_folding"),
        ("oo.deadCodeElimination", "oo_dead_code_elimination"),
        ("mode", "mode"),
        ("fold.maxBytes", "fold_max_bytes"),
    ],
)
def test_underscored_spelling(key: str, underscored: str) -> None:
    assert OPTIONS[key].underscored == underscored


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs thread affinity")
def test_threads_follow_the_affinity_of_the_process() -> None:
    before = os.sched_getaffinity(0)
    assert usable_cores() == len(before)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert OPTIONS["threads"].default("O3") == 1
    finally:
        os.sched_setaffinity(0, before)
