from __future__ import annotations

import pytest

from foldline.support.errors import InvalidOption
from foldline.support.suggest import did_you_mean, refuse


@pytest.mark.parametrize(
    ("name", "valid", "end"),
    [
        ("oo.levle", ["oo.level", "mode"], "; did you mean 'oo.level'?"),
        ("THREADS", ["threads"], "; did you mean 'threads'?"),
        ("maxbytes", ["maxBytes"], "; did you mean 'maxBytes'?"),
        ("zzz", ["b", "a"], "; valid: a, b"),
        ("zzz", [], ""),
        ("zzz", [f"name{i}" for i in range(13)], ""),
    ],
)
def test_did_you_mean(name: str, valid: list[str], end: str) -> None:
    assert did_you_mean(name, valid) == end


def test_refuse_lists_everything() -> None:
    refuse([])
    with pytest.raises(InvalidOption, match=r"^one$"):
        refuse(["one"])
    with pytest.raises(InvalidOption) as caught:
        refuse(["one", "two"])
    assert str(caught.value) == "2 things are wrong with the options:\n  one\n  two"
