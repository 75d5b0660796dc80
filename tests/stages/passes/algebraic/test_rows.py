"""Every row and every guard of the specification of the algebraic rewrites has a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = [*HERE.glob("test_*.py"), HERE.parents[2] / "foldline" / "cli" / "test_optimize.py"]
NAMES = set(
    re.findall(
        r"def (test_\w+)|id=\"(A\d+\w*)|ids=\[([^\]]*)\]|\"(A\d+[a-d])\"",
        "\n".join(path.read_text() for path in FILES if path.name != Path(__file__).name),
    )
)
TEXT = " ".join(part for found in NAMES for part in found)

GUARDS = {
    1: "A11 A12 A17 A23 A56 A81 A82 A95 A96 A97 A01",
    2: "A10 A33 A34 A58 A59 A60 A98",
    3: "A09 A28 A29 A50 A93",
    4: "A30 A94",
    5: "A31 A92",
    6: "A27 A36 A49 A55",
    7: "guard_7",
    8: "A29 A30 guard_8",
    9: "A24 A25",
    10: "A51 A52 guard_10",
    11: "guard_11",
    12: "A53 A54 A61",
    13: "A57 A101",
    14: "A47 A50 A93 guard_14",
    15: "A100 guard_15",
    16: "A78 A91 guard_16",
    17: "A65 A68 A69 A70 A71 A72 A73 A74",
    18: "A77",
    19: "A99 A104",
    20: "A83",
    21: "A08 guard_21",
    22: "A19 A21",
}


@pytest.mark.parametrize("row", range(1, 107))
def test_rows(row: int) -> None:
    assert re.search(rf"A{row:02}(?!\d)", TEXT)


@pytest.mark.parametrize("guard", range(1, 23))
def test_guards(guard: int) -> None:
    for name in GUARDS[guard].split():
        assert re.search(rf"{name}(?!\d)", TEXT), name


def test_the_rows_of_conv_add_and_batch_normalization() -> None:
    for what in ("both_orders", "training_mode", "gamma", "public", "variance", "overflow", "grow"):
        assert re.search(rf"test_row_conv_add_bn_\w*{what}", TEXT), what
