"""Saved and loaded, a stepper stands where it stood and goes on as it would have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline import transforms
from foldline.support.errors import InvalidArgumentError, InvalidModel
from foldline.workbench import saved_steps
from foldline.workbench.breakpoints import Breakpoint
from foldline.workbench.stepper import Stepper
from tests.foldline.workbench.stepped import MODEL, a_stepper, here, text_of


@pytest.fixture
def inside_fusion() -> Stepper:
    stepper = a_stepper()
    stepper.breakpoints.append(Breakpoint("type", "Relu"))
    stepper.until_named("linear-pack-fuse")
    return stepper


def test_what_was_shown_is_shown_again(inside_fusion: Stepper, tmp_path: Path) -> None:
    saved_steps.save(inside_fusion, tmp_path / "s")
    loaded = saved_steps.load(tmp_path / "s")
    assert here(loaded) == here(inside_fusion)
    assert text_of(loaded.original) == text_of(inside_fusion.original)
    assert (loaded.here.done, loaded.here.why) == (1, inside_fusion.here.why)
    assert loaded.breakpoints == inside_fusion.breakpoints
    assert loaded.past() == inside_fusion.past()
    assert loaded.ahead() == inside_fusion.ahead()
    assert list(loaded.here.shown.report.remarks) == list(inside_fusion.here.shown.report.remarks)
    assert not loaded.undo(), "stops before are not kept"


def test_it_goes_on_to_the_same_end(inside_fusion: Stepper, tmp_path: Path) -> None:
    saved_steps.save(inside_fusion, tmp_path / "s")
    loaded = saved_steps.load(tmp_path / "s")
    for stepper in (loaded, inside_fusion):
        stepper.resume([])
    assert here(loaded) == here(inside_fusion)
    rows = [
        [(row.stage, row.name, row.changes) for row in stepper.here.shown.report.rows]
        for stepper in (loaded, inside_fusion)
    ]
    assert rows[0] == rows[1]


def test_options_are_kept(tmp_path: Path) -> None:
    stepper = a_stepper("O1")
    saved_steps.save(stepper, tmp_path / "s")
    loaded = saved_steps.load(tmp_path / "s")
    loaded.resume()
    stepper.resume()
    assert here(loaded) == here(stepper)
    assert "foldline.Linear" not in here(loaded)


@transforms.traced
def relu(op, x):  # type: ignore[no-untyped-def]
    return op.Relu(x)


def test_rules_have_to_be_given_again(tmp_path: Path) -> None:
    rule = transforms.rewrite("mine", relu, lambda build, match: build.Abs(match.value("x")))
    stepper = Stepper.of(MODEL, {"oo.level": "O1"}, [rule])
    saved_steps.save(stepper, tmp_path / "s")
    with pytest.raises(InvalidArgumentError, match="the rules mine ran when it was saved"):
        saved_steps.load(tmp_path / "s")
    loaded = saved_steps.load(tmp_path / "s", [rule])
    loaded.resume()
    assert "Abs" in here(loaded)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "state.json").unlink(),
        lambda folder: (folder / "state.json").write_text("{"),
        lambda folder: (folder / "state.json").write_text(json.dumps({"place": [0, 0]})),
        lambda folder: (folder / "state.mlir").write_text("module {"),
        lambda folder: (folder / "tensors.npz").write_bytes(b"no archive"),
        lambda folder: (folder / "original.mlir").unlink(),
    ],
    ids=["no state", "no json", "too little", "no module", "no tensors", "no original"],
)
def test_a_damaged_folder_is_no_saved_state(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    stepper = a_stepper()
    stepper.stage()
    saved_steps.save(stepper, tmp_path / "s")
    damage(tmp_path / "s")
    with pytest.raises(InvalidModel, match="holds no saved steps"):
        saved_steps.load(tmp_path / "s")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(InvalidArgumentError, match="is not empty"):
        saved_steps.save(a_stepper(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
