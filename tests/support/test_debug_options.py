from __future__ import annotations

from pathlib import Path

import pytest

from foldline.support.debug_options import DEBUG_NAMES, DebugOptions, resolve_debug
from foldline.support.errors import InvalidOption


def test_defaults() -> None:
    assert resolve_debug() == DebugOptions()
    assert DebugOptions() == DebugOptions(None, None, False, (), (), False)
    assert DEBUG_NAMES == (
        "stop-after",
        "dump-to",
        "dump-each-pass",
        "print-after",
        "remarks",
        "time",
    )


def test_stronger_source_wins_name_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLINE_DEBUG", "dump-to=env, remarks=a,remarks=b*,time")
    debug = resolve_debug({"remarks": ["c"]}, {"dump-to": "yaml", "remarks": "d"})
    assert debug == DebugOptions(dump_to=Path("yaml"), remarks=("c",), time=True)
    assert resolve_debug().remarks == ("a", "b*")
    assert resolve_debug().dump_to == Path("env")


def test_values() -> None:
    debug = resolve_debug(
        {
            "stop_after": "stage1",
            "print-after": ["prune", "stage1/constant-folding"],
            "dump-each-pass": "true",
            "dump-to": Path("out"),
            "time": False,
        }
    )
    assert debug.stop_after == "stage1"
    assert debug.print_after == ("prune", "stage1/constant-folding")
    assert (debug.dump_each_pass, debug.dump_to, debug.time) == (True, Path("out"), False)


def test_dumps_of_each_pass_have_a_folder() -> None:
    assert resolve_debug({"dump-each-pass": True}).dump_to == Path("foldline-dump")


def test_everything_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLINE_DEBUG", "stop-afer=stage1,dump-to=a,dump-to=b")
    with pytest.raises(InvalidOption) as caught:
        resolve_debug({"stop-after": "stage3", "print-after": "stage9/prune", "time": 1})
    message = str(caught.value)
    assert message.startswith("5 things")
    assert "stop-afer (FOLDLINE_DEBUG): unknown debug option; did you mean 'stop-after'?" in message
    assert "dump-to (FOLDLINE_DEBUG): ['a', 'b'] is not a folder" in message
    assert "stop-after (command line): 'stage3' is not a stage; did you mean 'stage" in message
    assert "print-after (command line): 'stage9' is not a stage" in message
    assert "time (command line): 1 is neither true nor false" in message


@pytest.mark.parametrize("value", ["", 3, None, [""], ["prune", 3]])
def test_bad_globs(value: object) -> None:
    with pytest.raises(InvalidOption, match="remarks"):
        resolve_debug({"remarks": value})


def test_unknown_pass() -> None:
    with pytest.raises(InvalidOption, match="'pruen' is not a pass; did you mean 'prune'"):
        resolve_debug({"print-after": "pruen"})
