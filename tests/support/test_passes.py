from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import pytest

from foldline.support.option_table import OPTIONS
from foldline.support.passes import LEVELS, PASSES, STAGES


def test_stages_in_order() -> None:
    assert STAGES == ("prepare", "stage1", "stage2", "before_fusion", "fusion")


@pytest.mark.parametrize("name", PASSES)
def test_row_is_well_formed(name: str) -> None:
    info = PASSES[name]
    assert info.name == name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert info.level in LEVELS[1:]
    assert info.help.endswith(".")
    if info.switch:
        assert OPTIONS[info.switch].kind.check("false") is False


def test_what_a_pass_builds_on_stands_before_it() -> None:
    names = list(PASSES)
    for position, info in enumerate(PASSES.values()):
        assert set(info.runs_after) <= set(names[:position]), info.name


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("infer-shapes", ""),
        ("constant-folding", "oo.constantFolding"),
        ("eliminate-identity", ""),
        ("prune", "oo.deadCodeElimination"),
        ("merge-equal-constants", ""),
    ],
)
def test_first_passes(name: str, switch: str) -> None:
    info = PASSES[name]
    assert (info.level, info.switch) == ("O1", switch)
    assert info.preserves_bits
    assert not info.opt_in
    assert info.required == (name == "infer-shapes")


def test_rows_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        PASSES["prune"].level = "O3"  # type: ignore[misc]
