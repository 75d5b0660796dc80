"""What is told is heard inside the block, and nowhere else."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from foldline.cli.output import progress, tracked
from foldline.support.progress import listening, tell, told


def test_what_is_told_is_heard() -> None:
    heard: list[tuple[str, int, int]] = []
    tell("before")
    with listening(lambda *row: heard.append(row)):
        tell("reading", 1, 3)
        with listening(lambda *row: None):
            tell("not here")
        assert list(told("abcde", "letters", 5, each=2)) == list("abcde")
    tell("after")
    assert list(told("ab", "letters", 2)) == ["a", "b"]
    assert heard == [
        ("reading", 1, 3),
        ("letters", 0, 5),
        ("letters", 2, 5),
        ("letters", 4, 5),
    ]


def test_a_compile_says_which_pass_runs() -> None:
    import foldline
    from tests.foldline.test_compiler import foldable

    heard: list[tuple[str, int, int]] = []
    with listening(lambda *row: heard.append(row)):
        foldline.compile(foldable())
    names = [what for what, _, _ in heard]
    assert names[0] == "importing graph"
    assert any("constant-folding" in name or "infer-shapes" in name for name in names)
    steps = [(done, total) for what, done, total in heard if "/" in what]
    assert steps == sorted(steps)
    assert all(0 <= done < total for done, total in steps)


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen: Any = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress("compiling [a]"):
        tell("stage1/prune", 3, 9)
    assert "compiling [a]: stage1/prune" in screen.getvalue()
    assert "━" in screen.getvalue()


def test_a_pipe_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("compiling"):
        tell("stage1/prune", 3, 9)
    assert capsys.readouterr() == ("", "")


def test_items_are_counted_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(tracked(["a", "b"], "timing")) == ["a", "b"]
    screen: Any = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert list(tracked([1, 2], "timing", lambda item: f"model {item}")) == [1, 2]
    assert "timing: model 2" in screen.getvalue()
