"""Which passes run, and because of what: level, switches, toggles and needs put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foldline.support.option_table import OPTIONS
from foldline.support.passes import PASSES, PassInfo


@dataclass(frozen=True)
class Setting:
    """A checked value, the scope that set it, and how strong that scope is."""

    value: Any
    label: str
    strength: int


@dataclass(frozen=True)
class PassState:
    """Whether a pass runs, and because of what."""

    on: bool
    because: str
    asked: bool = False
    """A user said so, of the pass or of its switch; the level alone did not decide."""


def toggle_key(pass_name: str) -> str:
    """The option key that turns one pass on or off."""
    return f"passes.{pass_name}"


def pass_states(
    level: str, mode: str, settings: Mapping[str, Setting], problems: list[str]
) -> dict[str, PassState]:
    """The state of every pass; requests that contradict each other are appended to `problems`."""
    toggles = {name: _toggle(info, settings) for name, info in PASSES.items()}
    states = {
        name: _own_state(info, toggles[name], settings.get(info.switch), level, mode)
        for name, info in PASSES.items()
    }
    for name, toggle in toggles.items():
        if toggle and not toggle.value and PASSES[name].required:
            problems.append(f"{name} ({toggle.label}): cannot be disabled, other passes rely on it")
    off = {name for name, state in states.items() if state.asked and not state.on}
    for name in [name for name, state in states.items() if state.on]:
        missing = next((need for need in _needs(name) if need in off), None)
        if missing is None:
            continue
        toggle = toggles[name]
        if toggle:
            because = states[missing].because
            problems.append(f"{name} ({toggle.label}): is enabled but needs {missing}: {because}")
        states[name] = PassState(False, f"needs {missing}")
    for name in [name for name, state in states.items() if state.on]:
        for need in _needs(name):
            if not states[need].on:
                states[need] = PassState(True, f"needed by {name}")
    return states


def _toggle(info: PassInfo, settings: Mapping[str, Setting]) -> Setting | None:
    """What was said of this very pass, unless a stronger scope said something of its switch."""
    toggle, switch = settings.get(toggle_key(info.name)), settings.get(info.switch)
    if toggle and switch and switch.strength > toggle.strength:
        return None
    return toggle


def _own_state(
    info: PassInfo, toggle: Setting | None, switch: Setting | None, level: str, mode: str
) -> PassState:
    if mode == "exact" and not info.preserves_bits:
        return PassState(False, "exact mode runs only passes that preserve bits", asked=True)
    if toggle:
        verb = "enabled" if toggle.value else "disabled"
        return PassState(toggle.value, f"{verb} by {toggle.label}", asked=True)
    if info.opt_in:
        return PassState(False, "opt-in")
    if switch and not switch.value:
        return PassState(False, f"{info.switch} is false ({switch.label})", asked=True)
    if switch and info.level == "O1":
        return PassState(True, f"{info.switch} is true ({switch.label})", asked=True)
    if level < info.level:
        return PassState(False, f"level {level} is below {info.level}")
    if not switch and info.switch and not OPTIONS[info.switch].default(level):
        return PassState(False, f"{info.switch} is false")
    return PassState(True, f"level {level}")


def _needs(name: str) -> Iterator[str]:
    """Every pass that `name` builds on, directly or not."""
    for need in PASSES[name].runs_after:
        yield need
        yield from _needs(need)
