"""Each command of `foldline step`: what it says, what it does, what it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foldline.workbench.commands import COMMANDS, MOST_LINES
from foldline.workbench.console import Console
from tests.foldline.workbench.stepped import a_console, a_stepper, here, said

ENDING = re.compile(r"; (\d+) nodes$")


def nodes(line: str) -> int:
    found = ENDING.search(line)
    assert found is not None, line
    return int(found[1])


def test_next() -> None:
    console = a_console()
    assert said(console, "next") == ["[2] before prepare/protect-quantisation; 14 nodes"]
    (line,) = said(console, "n 2")
    assert line.startswith("[4] before ")


def test_change() -> None:
    console = a_console()
    console.stepper.until_named("fusion")
    head, counts, *lines = said(console, "change")
    assert "after fusion/matmul-add-to-gemm, 1 of 2 changes made" in head
    assert counts.startswith("nodes: 2 gone, 1 new, 0 changed")
    assert lines == [
        "- MatMul 'product'    [part of Gemm 'sum']",
        "- Add 'sum'    [part of Gemm 'sum']",
        "+ sum: s: float[N,8] = Gemm(x, w, b)",
    ]
    assert "2 of 2 changes made" in said(a_console(console.stepper), "c 1")[0]


def test_stage() -> None:
    console = a_console()
    lines = [said(console, "stage")[0] for _ in range(5)]
    assert [line.split()[2].partition("/")[0] for line in lines[:4]] == [
        "stage1",
        "stage2",
        "before_fusion",
        "fusion",
    ]
    assert lines[4].startswith("[6] the end;")


def test_until() -> None:
    console = a_console()
    assert said(console, "until fusion")[0].startswith("[2] before fusion/")
    assert said(console, "u fusion/linear-pack-fuse")[0].startswith(
        "[3] before fusion/linear-pack-fuse, 1 of 2 changes made"
    )
    console = a_console()
    (line,) = said(console, "until type MatMul")
    assert "stopped before" in line
    assert "(type MatMul)" in line
    assert not console.stepper.breakpoints, "it is asked once"
    (line,) = said(a_console(), "until rule matmul-add-*")
    assert line.startswith("[2] stopped before fusion/matmul-add-to-gemm")


def test_continue_break_and_delete() -> None:
    console = a_console()
    assert said(console, "break") == ["no breakpoints"]
    assert said(console, "break node product", "b value target") == [
        "1. node product",
        "2. value target",
    ]
    assert said(console, "delete 2") == ["gone: value target"]
    assert "(node product)" in said(console, "continue")[0]
    assert said(console, "delete 1", "go")[0].startswith("[3] the end;")
    assert said(console, "delete 1") == ["Error: there is no breakpoint 1; 0 are set"]


def test_undo() -> None:
    console = a_console()
    first, text = console.where(), here(console.stepper)
    assert said(console, "stage", "undo") == [first]
    assert here(console.stepper) == text
    assert said(console, "back") == ["Error: nothing to undo: this is the first stop"]


def test_where() -> None:
    console = a_console()
    assert said(console, "where")[1:] == ["next: prepare/inline-functions"]
    lines = said(console, "until fusion", "w")
    assert lines[1].startswith("next: fusion/compact-weights, ")
    assert lines[-1] == "its next change: matmul-add-to-gemm at MatMul 'product'"
    assert said(console, "go", "where") == [console.where()]


def test_diff() -> None:
    console = a_console()
    assert said(console, "next", "diff") == ["no difference"]
    counts, line = said(console, "stage", "diff")
    assert counts == "nodes: 1 gone, 0 new, 0 changed, 14 typed; constants: 2 gone, 1 new"
    assert line == "- Tile 'tiled'    [folded into 'w']"
    everything = said(console, "diff all")
    assert "- tiled: w = Tile(m, tall)    [folded into 'w']" in everything
    assert "~ zero = int64 0    [type 0: unknown -> int64]" in everything
    from_start = said(console, "go", "d start")
    assert "- Tile 'tiled'    [folded into 'w']" in from_start
    assert "+ relu: y: float[N,8] = foldline.Linear" in "\n".join(from_start)


def test_a_long_difference_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldline.workbench.commands.MOST_LINES", 3)
    lines = said(a_console(), "go", "diff start")
    assert len(lines) == 1 + 3 + 1
    assert said(a_console(), "nodes")[3] == "and 11 more; say all to see them"
    assert len(said(a_console(), "nodes all")) == 14
    assert len(said(a_console(), "nodes s* all")) == 3
    assert re.fullmatch(r"and \d+ more; say all to see them", lines[-1])
    assert len(said(a_console(), "go", "diff start all")) > MOST_LINES


def test_nodes() -> None:
    console = a_console()
    assert len(said(console, "nodes")) == 14
    assert said(console, "nodes MatMul") == ["product: p = MatMul(same, w)"]
    assert said(console, "nodes s*") == [
        "shape = Shape(x)",
        "same = Identity(x)",
        "sum: s = Add(p, b)",
    ]
    assert said(console, "nodes Foo") == ["no node and no operator is called 'Foo'"]


def test_show() -> None:
    assert said(a_console(), "show product") == [
        "^ tiled: w = Tile(m, tall)",
        "^ same = Identity(x)",
        "> product: p = MatMul(same, w)",
        "v sum: s = Add(p, b)",
    ]
    assert said(a_console(), "show product 2")[-1] == "vv relu: y: float[N,8] = Relu(s)"


def test_value() -> None:
    lines = said(a_console(), "value b")
    assert lines == [
        "b: float[8]",
        "constant: float32[8] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]",
        "read by sum",
    ]
    assert said(a_console(), "v same")[0] == "same: type not known"


def test_marks() -> None:
    console = a_console()
    assert said(console, "marks") == ["no marks"]
    assert "n = [N]    [Gather, dimension-compute]" in said(console, "stage", "marks")


def test_why() -> None:
    lines = said(a_console(), "go", "why tiled")
    assert lines[:2] == [
        "it is gone: folded into 'w'",
        "by prepare/constant-folding at Tile 'tiled'",
    ]


def test_run() -> None:
    asked: list[str] = []

    def read(path: str) -> Mapping[str, Any]:
        asked.append(path)
        return {"x": np.ones((3, 8), np.float32)}

    console = Console(a_stepper(), read)
    lines = said(console, "until linear-pack-fuse", "run")
    assert lines[0] == "interface: same bits"
    assert all(line.endswith("same bits") for line in lines)
    assert "given: same bits" in said(console, "r in.npz")
    assert asked == ["in.npz"]


def test_run_says_where_outputs_differ() -> None:
    console = a_console()
    (op,) = [op for op in console.stepper.here.module.walk() if op.name == "onnx.Relu"]
    op.results[0].replace_all_uses_with(op.operands[0])
    lines = said(console, "run")
    assert any(re.match(r"random: differs by [\d.e+-]+ in y: ", line) for line in lines)


def test_print() -> None:
    console = a_console()
    assert "\n".join(said(console, "print")).strip() == here(console.stepper).strip()


def test_save(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert said(a_console(), f"save '{folder}'") == [
        f"saved; go on with: foldline step --resume {folder}"
    ]
    assert (folder / "state.json").is_file()
    assert said(a_console(), f"save '{folder}'") == [f"Error: '{folder}' is not empty"]
    (tmp_path / "file").write_text("")
    assert said(a_console(), f"save '{tmp_path / 'file'}'")[0].startswith("Error: ")


def test_help() -> None:
    lines = said(a_console(), "help")
    assert len(lines) == len(COMMANDS)
    assert [line.split(",")[0].split(" ")[0] for line in lines] == [c.names[0] for c in COMMANDS]
    assert all(len(line) <= 100 for line in lines)
    (line,) = said(a_console(), "help undo")
    assert line.startswith("undo, back ")
    assert said(a_console(), "help everybody") == ["Error: no command 'everybody'; try help"]


def test_quit() -> None:
    console = a_console()
    assert said(console, "quit") == []
    assert console.is_over


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("", None),
        ("# a remark", None),
        ("where # a remark", "[1] the model as imported; 14 nodes"),
        ("stpe", "Error: no command 'stpe'; did you mean 'step'?; try help"),
        ("next 0", "Error: '0' is no number from 1 on"),
        ("next 1 2", "Error: name a number and no more"),
        ("undo now", "Error: 'now' is too much here"),
        ("show", "Error: name a node"),
        ("break type", "Error: say break KIND GLOB, as in: break type Conv"),
        ("diff strat", "Error: 'strat' is too much here"),
        ("until", "Error: name a pass, a stage, or a kind and a glob"),
        ("why 'open", "Error: No closing quotation"),
    ],
)
def test_lines_that_are_odd(line: str, answer: str | None) -> None:
    lines = said(a_console(), line)
    assert lines[:1] == ([] if answer is None else [answer])


def test_completion() -> None:
    console = a_console()
    assert console.words("un") == ["until", "undo"]
    assert console.words("why pro") == ["product", "protect-quantisation"]
    assert console.words("break no") == ["node"]
    assert "fusion" in console.words("until fu")
    assert "start" in console.words("diff st")


def test_names_of_commands_are_taken_once() -> None:
    names = [name for command in COMMANDS for name in command.names]
    assert len(names) == len(set(names))


def test_each_command_has_a_test() -> None:
    source = Path(__file__).read_text()
    tested = set("_".join(re.findall(r"^def test_(\w+)", source, re.MULTILINE)).split("_"))
    assert {command.names[0] for command in COMMANDS} <= tested
