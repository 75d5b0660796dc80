"""`foldline step`: scripts from files and pipes, saved states, the prompt, errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from foldline.cli import root, step
from foldline.workbench.stepper import Stepper
from tests.foldline.workbench.stepped import MODEL, a_console


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOLDLINE_HISTORY", str(tmp_path / "past" / "lines"))
    onnx.save(MODEL, "m.onnx")


def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(root, ["step", *arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_a_script_from_a_file_is_shown_with_its_answers() -> None:
    Path("s.txt").write_text("# to the fusions\nuntil fusion\n\nwhere\nquit\nnot reached\n")
    lines = run("m.onnx", "--script", "s.txt").stdout.splitlines()
    assert lines[:4] == [
        "[1] the model as imported; 14 nodes",
        "(foldline) # to the fusions",
        "(foldline) until fusion",
        "[2] before fusion/compact-weights and 39 more; 5 nodes",
    ]
    assert lines[-1] == "(foldline) quit"


@pytest.mark.parametrize("arguments", [(), ("--script", "-")])
def test_a_script_from_a_pipe(arguments: tuple[str, ...]) -> None:
    lines = run("m.onnx", *arguments, stdin="next\nundo\n").stdout.splitlines()
    assert lines[0] == lines[-1] == "[1] the model as imported; 14 nodes"


def test_options_reach_the_compile() -> None:
    text = run("m.onnx", "--oo.level", "O1", stdin="until gelu\n").stdout
    assert "Error: gelu is not ahead" in text
    text = run("m.onnx", "--input-shape", "x:2,8", stdin="value x\n").stdout
    assert "x: float[2,8]" in text


def test_save_and_resume() -> None:
    run("m.onnx", stdin="until linear-pack-fuse\nsave kept\n")
    lines = run("--resume", "kept", stdin="change\nundo\n").stdout.splitlines()
    assert lines[0] == lines[-1]
    assert lines[0].startswith("[1] before fusion/linear-pack-fuse, 1 of 2 changes made")
    assert any("foldline.Linear" in line for line in lines)


def test_inputs_are_read_from_an_archive() -> None:
    np.savez("in.npz", x=np.ones((2, 8), np.float32))
    assert "given: same bits" in run("m.onnx", stdin="until fusion\nrun in.npz\n").stdout
    assert "Error: " in run("m.onnx", stdin="run absent.npz\n").stdout


def test_rules_take_part() -> None:
    Path("rules.yaml").write_text(
        "rules:\n  - name: no-relu\n    pattern: Relu(x)\n    replace: Abs(x)\n"
    )
    text = run(
        "m.onnx", "--oo.level", "O1", "--rules", "rules.yaml", stdin="until rule no-relu\nchange\n"
    ).stdout
    assert "stopped before fusion/no-relu" in text
    assert "Abs(" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "give MODEL, or --resume FOLDER"),
        (("m.onnx", "--resume", "x"), 2, "give MODEL, or --resume FOLDER"),
        (("absent.onnx",), 1, "absent.onnx"),
        (("--resume", "absent"), 1, "'absent' holds no saved steps"),
        (("m.onnx", "--script", "absent.txt"), 1, "absent.txt"),
        (("m.onnx", "--script", "m.onnx"), 1, "'m.onnx' is no text"),
    ],
)
def test_errors(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run(*arguments, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_an_answer_that_is_an_error_does_not_end_the_session() -> None:
    lines = run("m.onnx", stdin="nonsense\nnext\n").stdout.splitlines()
    assert lines[2].startswith("Error: no command 'nonsense'")
    assert lines[-1].startswith("[2] ")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    """A terminal whose keys the test presses."""
    monkeypatch.setattr(step, "_is_terminal", lambda: True)
    with create_pipe_input() as pipe, create_app_session(pipe, DummyOutput()):
        yield pipe


def test_the_prompt_answers_until_it_is_left(keys: PipeInput) -> None:
    keys.send_text("next\rwhere\rquit\r")
    lines = run("m.onnx").stdout.splitlines()
    assert lines == [
        "[1] the model as imported; 14 nodes",
        "[2] before prepare/protect-quantisation; 14 nodes",
        "[2] before prepare/protect-quantisation; 14 nodes",
        "next: prepare/protect-quantisation",
    ]
    kept = (Path("past") / "lines").read_text()
    assert [line for line in kept.splitlines() if line.startswith("+")] == [
        "+next",
        "+where",
        "+quit",
    ]


def test_interrupt_clears_the_line_and_end_of_input_leaves(keys: PipeInput) -> None:
    keys.send_text("nonsense\x03undo\r\x04")
    lines = run("m.onnx").stdout.splitlines()
    assert lines[1:] == ["Error: nothing to undo: this is the first stop"]


def test_an_interrupted_command_leaves_one_where_one_stood(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Stepper) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Stepper, "stage", interrupted)
    keys.send_text("stage\rnext\r\x04")
    assert [line[:3] for line in run("m.onnx").stdout.splitlines()] == ["[1]", "[2]"]


def test_the_history_grows_from_session_to_session() -> None:
    for word in ("next", "undo"):
        with create_pipe_input() as pipe, create_app_session(pipe, DummyOutput()):
            pipe.send_text(f"{word}\r\x04")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(step, "_is_terminal", lambda: True)
                run("m.onnx")
    kept = (Path("past") / "lines").read_text()
    assert [line for line in kept.splitlines() if line.startswith("+")] == ["+next", "+undo"]


def test_names_are_completed() -> None:
    completer = step._completer(a_console())
    document = Document("why prod")
    (found, *_) = completer.get_completions(document, CompleteEvent())
    assert (found.text, found.start_position) == ("product", -4)
