"""Stops: forwards by steps and changes, back to the very state that was shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from foldline.importer import import_model
from foldline.stages.run import run_pipeline
from foldline.support.errors import InvalidArgumentError
from foldline.support.options import resolve
from foldline.workbench import stepper as engine
from foldline.workbench.breakpoints import Breakpoint
from foldline.workbench.stepper import Stepper
from tests.foldline.workbench.stepped import MODEL, a_stepper, here, text_of

MOVES: dict[str, Callable[[Stepper], object]] = {
    "step": lambda s: s.step(),
    "change": lambda s: s.change(),
    "stage": lambda s: s.stage(),
    "until a pass": lambda s: s.until_named("constant-folding"),
    "until a stage": lambda s: s.until_named("fusion"),
    "until a change": lambda s: s.resume([Breakpoint("type", "MatMul")]),
    "to the end": lambda s: s.resume(),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_undo_returns_to_the_very_state(move: Callable[[Stepper], object]) -> None:
    stepper = a_stepper()
    stepper.change()
    stop, before = stepper.here, here(stepper)
    move(stepper)
    assert stepper.here is not stop
    assert here(stepper), "the state is built before the undo"
    assert stepper.undo()
    assert stepper.here is stop
    assert here(stepper) == before


def test_undo_all_the_way_shows_each_state_again() -> None:
    stepper, texts = a_stepper(), []
    for _ in range(6):
        texts.append(here(stepper))
        stepper.change()
    while stepper.undo():
        assert here(stepper) == texts.pop()
    assert len(texts) == 0
    assert not stepper.undo(), "the first stop stays"


def test_the_end_is_what_a_compile_gives() -> None:
    stepper = a_stepper()
    stepper.resume()
    assert stepper.is_at_end
    module = import_model(MODEL)
    run_pipeline(module, resolve({"oo.level": "O3"}))
    assert here(stepper) == text_of(module)
    stepper.step()
    stepper.change()
    assert stepper.number == 2, "at the end there is nowhere to go"


def test_change_by_change_ends_where_step_by_step_does() -> None:
    small, large = a_stepper(), a_stepper()
    while not small.is_at_end:
        small.change()
    while not large.is_at_end:
        large.step()
    assert here(small) == here(large)
    assert len(small.past()) == len(large.past())
    assert [p.change.number for p in small.past()] == [p.change.number for p in large.past()]


def test_the_state_inside_a_step_has_the_changes_that_were_made_and_no_more() -> None:
    stepper = a_stepper()
    stepper.until_named("fusion")
    before = here(stepper)
    stepper.change()
    assert stepper.here.why == "after fusion/matmul-add-to-gemm"
    assert [node.op_type for node in stepper.since().added] == ["Gemm"]
    stepper.change()
    assert [node.op_type for node in stepper.since().added] == ["foldline.Linear"]
    assert {r.node.op_type for r in stepper.since(2).removed} == {"MatMul", "Add", "Relu"}
    stepper.undo()
    stepper.undo()
    assert here(stepper) == before


def test_until_goes_to_the_first_change_of_a_pass_inside_a_step() -> None:
    stepper = a_stepper()
    stepper.until_named("linear-pack-fuse")
    change = stepper.next_change()
    assert change is not None
    assert (change.pass_name, change.node) == ("linear-pack-fuse", "sum")
    assert stepper.here.done == 1


def test_until_a_pass_whose_change_is_next_and_then_past_it() -> None:
    stepper = a_stepper()
    stepper.until_named("fusion")
    stepper.until_named("matmul-add-to-gemm")
    assert (stepper.here.done, stepper.here.why) == (0, "before fusion/matmul-add-to-gemm")
    with pytest.raises(InvalidArgumentError, match="it makes no more changes"):
        stepper.until_named("matmul-add-to-gemm")
    first = a_stepper()
    first.until_named("constant-folding")
    first.until_named("constant-folding")
    assert first.number == 3, "from one change of a pass to the next"


def test_until_a_pass_without_changes_stands_before_its_step() -> None:
    stepper = a_stepper()
    stepper.until_named("fusion/gelu")
    assert stepper.here.why == "before fusion/gelu, which changes nothing"
    assert stepper.here.done == 0


def test_until_wants_what_is_ahead() -> None:
    stepper = a_stepper("O1")
    with pytest.raises(InvalidArgumentError, match=r"'fusoin' is no pass.*did you mean 'fusion'"):
        stepper.until_named("fusoin")
    with pytest.raises(InvalidArgumentError, match="gelu is not ahead: it has run, or is off"):
        stepper.until_named("gelu")
    with pytest.raises(InvalidArgumentError, match="stage prepare is not ahead"):
        stepper.until_named("prepare")
    assert stepper.number == 1, "who asks for nonsense stays where he is"


def test_breakpoints_stop_before_a_change_and_the_next_resume_is_behind_it() -> None:
    stepper = a_stepper()
    stepper.breakpoints.append(Breakpoint("node", "product"))
    places = []
    while stepper.resume() is not None:
        change = stepper.next_change()
        assert change is not None
        assert "product" in (change.node, *change.touched)
        places.append((stepper.here.due, change.number))
    assert len(places) == len(set(places)) >= 3
    assert stepper.is_at_end


def test_stops_beyond_the_most_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_STOPS", 3)
    stepper = a_stepper()
    for _ in range(4):
        stepper.step()
    assert (len(stepper.stops), stepper.forgotten, stepper.number) == (3, 2, 5)
    stepper.undo()
    stepper.undo()
    assert not stepper.undo()


def test_the_original_is_only_read() -> None:
    stepper = a_stepper()
    before = text_of(stepper.original)
    stepper.resume()
    stepper.compare(None, None)
    assert text_of(stepper.original) == before


def test_a_state_inside_a_step_runs_and_agrees() -> None:
    stepper = a_stepper()
    stepper.until_named("linear-pack-fuse")
    result = stepper.compare({"x": np.arange(16, dtype=np.float32).reshape(2, 8)}, None)
    assert result.equal
    outputs = stepper.session().run(None, {"x": np.ones((1, 8), np.float32)})
    assert [output.shape for output in outputs] == [(1, 8), (1, 4)]


def test_what_is_ahead_shrinks_and_leaves_out_what_is_off() -> None:
    stepper = a_stepper("O1")
    first = stepper.ahead()
    assert first[0] == "prepare/inline-functions"
    assert not any("gelu" in name for name in first)
    stepper.stage()
    assert stepper.ahead() == first[len(first) - len(stepper.ahead()) :]
    stepper.resume()
    assert stepper.ahead() == []
