from __future__ import annotations

from dataclasses import replace

import pytest

from foldline.support.pass_states import PassState, Setting, pass_states, toggle_key
from foldline.support.passes import PASSES, PassInfo


@pytest.fixture(autouse=True)
def _more_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    base = PassInfo("", "O2", "", True, False, (), "Help.")
    rows = [
        replace(base, name="late", runs_after=("constant-folding",)),
        replace(base, name="later", level="O3", runs_after=("late",), preserves_bits=False),
        replace(base, name="shy", opt_in=True),
        replace(base, name="switched-late", switch="oo.constantFolding"),
    ]
    for row in rows:
        monkeypatch.setitem(PASSES, row.name, row)


def states(
    level: str = "O3", mode: str = "fast", **said: bool | tuple[bool, int]
) -> dict[str, PassState]:
    """Keyword names are passes or `folding`, the switch; a tuple gives the strength too."""
    settings: dict[str, Setting] = {}
    for name, value in said.items():
        on, strength = value if isinstance(value, tuple) else (value, 1)
        key = "oo.constantFolding" if name == "folding" else toggle_key(name.replace("_", "-"))
        settings[key] = Setting(on, "graph", strength)
    problems: list[str] = []
    result = pass_states(level, mode, settings, problems)
    if problems:
        raise ValueError("\n".join(problems))
    return result


def running(level: str = "O3", **said: bool | tuple[bool, int]) -> set[str]:
    return {name for name, state in states(level, **said).items() if state.on}


BY_LEVEL = {name: row for name, row in PASSES.items() if not row.opt_in}
FIRST = {name for name, row in BY_LEVEL.items() if row.level == "O1" and row.switch != "weightClip"}
SECOND = {name for name, row in BY_LEVEL.items() if row.level == "O2"}
THIRD = {name for name, row in BY_LEVEL.items() if row.level == "O3"}
FOLDING = {name for name, row in PASSES.items() if row.switch == "oo.constantFolding"}


def test_levels() -> None:
    assert running("O0") == set()
    assert running("O1") == FIRST
    assert running("O2") == FIRST | SECOND | {"late", "switched-late"}
    assert running("O3") == FIRST | SECOND | THIRD | {"late", "switched-late", "later"}


def test_a_pass_whose_switch_is_off_by_default_runs_when_it_is_set() -> None:
    state = states("O3")["constant-clip"]
    assert (state.on, state.because) == (False, "weightClip is false")
    problems: list[str] = []
    said = {"weightClip": Setting(True, "graph", 1)}
    assert pass_states("O1", "fast", said, problems)["constant-clip"].on
    assert not problems


def test_opt_in_needs_to_be_named() -> None:
    assert "shy" in running("O0", shy=True)
    assert states()["shy"] == PassState(False, "opt-in")


def test_what_an_enabled_pass_needs_is_on() -> None:
    assert running("O0", later=True) == {"later", "late", "constant-folding", "infer-shapes"}
    assert states("O0", late=True)["infer-shapes"].because == "needed by late"


def test_a_switch_set_at_o0_runs_what_it_switches_from_o1() -> None:
    assert running("O0", folding=True) == FOLDING | {"infer-shapes"}


def test_disabled_dependency_of_an_enabled_pass() -> None:
    with pytest.raises(ValueError, match=r"later \(graph\): is enabled but needs constant-folding"):
        states(later=True, constant_folding=False)
    with pytest.raises(ValueError, match=r"late .* needs constant-folding: oo.constantFolding is"):
        states(late=True, folding=False)


def test_disabled_dependency_of_a_pass_nobody_asked_for() -> None:
    on = states(constant_folding=False)
    assert on["late"] == PassState(False, "needs constant-folding")
    assert on["later"] == PassState(False, "needs constant-folding")
    assert on["prune"].on


def test_required_cannot_be_disabled() -> None:
    with pytest.raises(ValueError, match=r"infer-shapes \(graph\): cannot be disabled"):
        states(infer_shapes=False)


def test_toggle_beats_switch_unless_the_switch_is_in_a_stronger_scope() -> None:
    assert "constant-folding" in running(folding=False, constant_folding=True)
    assert "constant-folding" not in running(folding=(False, 2), constant_folding=(True, 1))
    assert "constant-folding" in running(folding=(True, 2), constant_folding=(False, 1))


def test_exact_mode_runs_only_what_preserves_bits() -> None:
    exact = states(mode="exact", later=True)
    assert not exact["later"].on
    assert exact["late"].on
