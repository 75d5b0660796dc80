"""500 random graphs of each family of fusions: valid, alike outside, equal in value, settled."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.stages.passes.fusion.random_activations import FAMILIES as ACTIVATIONS
from tests.stages.passes.fusion.random_attention import FAMILIES as ATTENTION
from tests.stages.passes.fusion.random_checks import check
from tests.stages.passes.fusion.random_graphs import Family
from tests.stages.passes.fusion.random_movement import FAMILIES as MOVEMENT
from tests.stages.passes.fusion.random_products import FAMILIES as PRODUCTS
from tests.stages.passes.fusion.random_quantised import FAMILIES as QUANTISED

FAMILIES: dict[str, Family] = {**ACTIVATIONS, **ATTENTION, **MOVEMENT, **PRODUCTS, **QUANTISED}
FEW, MANY = 40, 500


@pytest.mark.parametrize("name", FAMILIES)
def test_some_random_graphs(name: str) -> None:
    """The first graphs of each family, some of which are changed."""
    changed = _changed(FAMILIES[name], range(FEW))
    assert changed["nothing"] < FEW, changed


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_500_random_graphs(name: str) -> None:
    """A good share of them is changed, each pass of the family does so, and some are left alone."""
    family = FAMILIES[name]
    changed = _changed(family, range(MANY))
    assert all(changed[each] for each in family.passes), changed
    assert family.share * MANY <= MANY - changed["nothing"] < MANY, changed


def _changed(family: Family, numbers: range) -> Counter[str]:
    """How many graphs each pass of a family changed, and how many none did."""
    found = Counter[str]()
    for number in numbers:
        passes = check(family, number) & set(family.passes)
        found.update(passes or ["nothing"])
    return found
