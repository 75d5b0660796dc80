from __future__ import annotations

from typing import Any

import pytest

from foldline.support.option_table import OPTIONS, SHAPE_KEY
from foldline.support.option_values import BadValue

ACCEPTED: list[tuple[str, Any, Any]] = [
    ("oo.level", "O2", "O2"),
    ("oo.level", "None", "O0"),
    ("oo.level", "Basic", "O1"),
    ("oo.level", "All", "O3"),
    ("oo.constantFolding", "false", False),
    ("oo.constantFolding", True, True),
    ("fold.maxBytes", 0, 0),
    ("fold.maxBytes", "65536", 65536),
    ("fold.maxBytes", "64KiB", 65536),
    ("fold.maxBytes", "2 MiB", 2 << 20),
    ("fold.skip", "a,b*", ("a", "b*")),
    ("fold.skip", ["op:Shape", "value:x,y"], ("op:Shape", "value:x,y")),
    ("passes.enable", "prune, constant-folding", ("prune", "constant-folding")),
    ("passes.disable", [], ()),
    (SHAPE_KEY, "1,3,224,224", (1, 3, 224, 224)),
    (SHAPE_KEY, "[1, ?]", (1, None)),
    (SHAPE_KEY, [0, None, "?", 4], (0, None, None, 4)),
    (SHAPE_KEY, "", ()),
    ("threads", "2", 2),
    ("threads", 1, 1),
    ("export.valueInfo", "none", "none"),
    ("export.fused", "functions", "functions"),
]

REFUSED: list[tuple[str, Any, str]] = [
    ("oo.level", "", "valid: All, Basic, None, O0"),
    ("oo.level", "OvO", "valid: All, Basic, None, O0"),
    ("oo.level", "o3", "did you mean 'O3'"),
    ("oo.level", None, "None is not valid"),
    ("oo.level", 3, "3 is not valid"),
    ("oo.constantFolding", "TRUE", "valid: true, false"),
    ("oo.constantFolding", "", "valid: true, false"),
    ("oo.constantFolding", 1, "valid: true, false"),
    ("mode", "slow", "'slow' is not valid; valid: exact, fast"),
    ("mode", "fats", "did you mean 'fast'"),
    ("memoryPolicy", "MemoryPrio", "did you mean 'MemoryPriority'"),
    ("weightStorage", "Binary61", "did you mean 'Binary16'"),
    ("weightStorage", "float32", "did you mean 'Float32'"),
    ("fusion.half", "skip", "valid: by-value, skip-model"),
    ("weightClip", "1", "valid: true, false"),
    ("export.fused", "function", "did you mean 'functions'"),
    ("fold.maxBytes", -1, "valid: bytes"),
    ("fold.maxBytes", "64kb", "valid: bytes"),
    ("fold.maxBytes", True, "valid: bytes"),
    ("fold.maxBytes", 1.5, "valid: bytes"),
    ("fold.skip", [1], "a list of texts"),
    ("fold.skip", 3, "a list of texts"),
    ("passes.enable", "pruen,x", "'pruen' is not a pass; did you mean 'prune'.*'x' is not a pass"),
    ("passes.enable", None, "a list of texts"),
    (SHAPE_KEY, "1,-1", r"'-1' is not a dimension.*\? to leave"),
    (SHAPE_KEY, [True], "True is not a dimension"),
    (SHAPE_KEY, 3, "3 is not a shape"),
    ("threads", 0, "a whole number from 1"),
    ("threads", True, "a whole number from 1"),
    ("threads", "two", "a whole number from 1"),
]


@pytest.mark.parametrize(("key", "value", "meant"), ACCEPTED)
def test_accepts(key: str, value: Any, meant: Any) -> None:
    accepted = OPTIONS[key].kind.check(value)
    assert accepted == meant
    assert type(accepted) is type(meant)
    assert OPTIONS[key].kind.check(accepted) == meant, "checking again changes nothing"


@pytest.mark.parametrize(("key", "value", "message"), REFUSED)
def test_refuses(key: str, value: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        OPTIONS[key].kind.check(value)
