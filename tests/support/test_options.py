from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from foldline.support.errors import InvalidOption
from foldline.support.options import (
    Explanation,
    canonical_key,
    check_scope,
    resolve,
    set_options,
    user_file,
)


def refusal(*scopes: Mapping[str, Any]) -> str:
    with pytest.raises(InvalidOption) as caught:
        resolve(*scopes)
    return str(caught.value)


def origin(options: Any, key: str) -> str:
    return next(line.origin for line in options.explain() if line.key == key)


def test_defaults() -> None:
    options = resolve()
    assert options.level == "O3"
    assert options["fold.maxBytes"] == 65536
    assert options["fold.skip"] == ()
    assert options["passes.enable"] == ()
    assert options["export.valueInfo"] == "all"
    assert options.threads >= 1
    assert options.input_shapes == {}
    assert options.enabled("constant-folding")
    assert origin(options, "mode") == "default"


def test_the_level_moves_defaults_but_not_what_is_said() -> None:
    options = resolve({"oo.level": "O0", "oo.constantFolding": "true"})
    assert options["export.valueInfo"] == "keep"
    assert options["oo.deadCodeElimination"] is False
    assert options["oo.constantFolding"] is True
    assert options.enabled("constant-folding")
    assert not options.enabled("prune")
    assert not resolve({"oo.constantFolding": False}).enabled("constant-folding")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("oo.level", "oo.level"),
        ("ge.oo.level", "oo.level"),
        ("oo_level", "oo.level"),
        ("oo_constant_folding", "oo.constantFolding"),
        ("ge.oo.deadCodeElimination", "oo.deadCodeElimination"),
        ("inputs.x.shape", "inputs.x.shape"),
        ("inputs.a.b:0.shape", "inputs.a.b:0.shape"),
        ("inputs.trustNames", "inputs.trustNames"),
        ("passes.prune", "passes.prune"),
        ("passes.pruen", None),
        ("inputs.<name>.shape", None),
        ("inputs.shape", None),
        ("OO.LEVEL", None),
        ("ge.ge.mode", None),
        (7, None),
    ],
)
def test_spellings(given: object, key: str | None) -> None:
    assert canonical_key(given) == key


def test_stronger_scope_wins_key_by_key() -> None:
    set_options({"threads": 5, "fold.maxBytes": 5, "oo.level": "O1"})
    options = resolve({"threads": 7}, {"ge.threads": 6, "fold_max_bytes": 6})
    assert (options.threads, options["fold.maxBytes"], options.level) == (7, 6, "O1")
    assert origin(options, "threads") == "graph"
    assert origin(options, "fold.maxBytes") == "session"
    assert origin(options, "oo.level") == "set_options"
    assert origin(options, "mode") == "default"
    assert origin(resolve({"threads": 1}, labels=["command line"]), "threads") == "command line"


def test_passes_are_merged_one_by_one() -> None:
    options = resolve(
        {"passes.disable": ["prune"]}, {"passes.enable": "prune,merge-equal-constants"}
    )
    assert not options.enabled("prune")
    assert options["passes.enable"] == ("merge-equal-constants",)
    assert options["passes.disable"] == ("prune",)
    assert origin(options, "passes.enable") == "session"
    assert Explanation("prune", False, "disabled by graph") in options.explain()


def test_passes_of_one_scope_may_not_contradict() -> None:
    assert refusal({"passes.enable": ["prune"], "passes.disable": ["prune"]}) == (
        "passes.prune (graph): is both enabled and disabled"
    )
    assert "both" in refusal({"passes.disable": ["prune"], "passes.prune": True})


def test_input_shapes() -> None:
    options = resolve(
        {"inputs.a.b:0.shape": "1,?,3"}, {"inputs.y.shape": [2], "inputs_trust_names": True}
    )
    assert options.input_shapes == {"a.b:0": (1, None, 3), "y": (2,)}
    assert options["inputs.a.b:0.shape"] == (1, None, 3)
    assert options["inputs.trustNames"] is True


def test_everything_wrong_is_said_at_once() -> None:
    set_options({})
    message = refusal(
        {"oo.levle": "O1", "mode": "slow", "passes.enable": ["pruen"]},
        {"threads": 0, "fold.mxBytes": 1},
    )
    assert message.splitlines() == [
        "5 things are wrong with the options:",
        "  oo.levle (graph): unknown option; did you mean 'oo.level'?",
        "  mode (graph): 'slow' is not valid; valid: exact, fast",
        "  passes.enable (graph): 'pruen' is not a pass; did you mean 'prune'?",
        "  threads (session): 0 is not valid; valid: a whole number from 1",
        "  fold.mxBytes (session): unknown option; did you mean 'fold.maxBytes'?",
    ]


def test_one_key_under_two_spellings() -> None:
    message = refusal({"oo.level": "O1", "ge.oo.level": "O2"})
    assert message == "ge.oo.level (graph): already said as oo.level"


def test_contradictions_are_found_beside_bad_values() -> None:
    message = refusal({"passes.disable": ["infer-shapes"], "threads": 0})
    assert "infer-shapes (graph): cannot be disabled" in message
    assert "threads (graph)" in message


def test_a_checked_scope_is_a_scope() -> None:
    scope = {"ge.oo.level": "Basic", "passes.disable": "prune", "inputs.x.shape": "1,?"}
    problems: list[str] = []
    checked = check_scope(scope, "", "graph", problems)
    assert checked == {"oo.level": "O1", "passes.prune": False, "inputs.x.shape": (1, None)}
    assert check_scope(checked, "", "graph", problems) == checked
    assert not problems


def test_resolved_options_are_frozen() -> None:
    options = resolve()
    with pytest.raises(TypeError):
        options.values["mode"] = "exact"  # type: ignore[index]
    with pytest.raises(KeyError):
        options.enabled("no-such-pass")
    with pytest.raises(KeyError):
        options["no.such.option"]


def test_set_options_replaces_or_changes_nothing() -> None:
    set_options({"threads": 3})
    with pytest.raises(InvalidOption, match="unknown option; did you mean 'threads'"):
        set_options({"thread": 4})
    assert resolve().threads == 3
    set_options({"oo.level": "O1"})
    assert origin(resolve(), "threads") == "default"
    with pytest.raises(InvalidOption, match="belongs to one model"):
        set_options({"inputs.x.shape": [1]})


def test_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("oo.level: None\nthreads: 2\n")
    monkeypatch.setenv("FOLDLINE_CONFIG", str(file))
    set_options({"threads": 3})
    options = resolve()
    assert (options.level, options.threads) == ("O0", 3)
    assert origin(options, "oo.level") == str(file)
    file.write_text("oo.lvel: O1\ninputs.x.shape: [1]\n")
    message = refusal({"threads": 0})
    assert f"oo.lvel ({file}): unknown option" in message
    assert f"inputs.x.shape ({file}): belongs to one model" in message
    assert "threads (graph)" in message
    file.unlink()
    assert "cannot be read" in refusal()


def test_where_the_user_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_file() is None
    monkeypatch.delenv("FOLDLINE_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file() is None
    (tmp_path / "foldline").mkdir()
    file = tmp_path / "foldline" / "options.yaml"
    file.write_text("threads: 9\n")
    assert user_file() == file
    assert resolve().threads == 9
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "foldline").mkdir(parents=True)
    (tmp_path / ".config" / "foldline" / "options.yaml").write_text("threads: 8\n")
    assert resolve().threads == 8
