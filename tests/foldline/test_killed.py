"""Killed at random moments: a model is there wholly or not at all, and nothing is left behind."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from foldline.exporter import temporary

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
ROOT = Path(__file__).resolve().parents[2]


def weighty(seed: int) -> onnx.ModelProto:
    """A model with 8 MB of weights, half of them folded."""
    weights = np.random.default_rng(seed).standard_normal((2, 1000, 1000), np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Neg", ["a"], ["c"]),
            helper.make_node("MatMul", ["x", "c"], ["t"]),
            helper.make_node("MatMul", ["t", "b"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1000])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 1000])],
        [numpy_helper.from_array(w, name) for w, name in zip(weights, "ab", strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


class Victim:
    """A process that runs `foldline compile` in children, and kills them."""

    def __init__(self, folder: Path, flags: list[str]):
        self.folder, self.flags = folder, flags
        command = [sys.executable, "-m", "tests.foldline.killing"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def compile(self, name: str, number: int = 0, delay: float = 0) -> dict[str, Any]:
        """Compile a model of the folder to `out.onnx`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        target = str(self.folder / "out.onnx")
        arguments = ["compile", str(self.folder / name), "-o", target, "--force", *self.flags]
        request = {"arguments": arguments, "signal": int(number), "delay": delay}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def files(self) -> dict[str, str]:
        """The files of the folder by name, and what is in them."""
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in self.folder.iterdir()}

    def is_loaded(self) -> bool:
        """Whether what is there is a whole model, with its data."""
        model = onnx.load(self.folder / "out.onnx")
        return sum(numpy_helper.to_array(t).size for t in model.graph.initializer) > 0


@pytest.fixture(params=["inside", "external"])
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    """Two models of which outputs are known."""
    flags = ["--external-data"] if request.param == "external" else []
    made = Victim(tmp_path, flags)
    for name, seed in (("old.onnx", 1), ("new.onnx", 2)):
        onnx.save(weighty(seed), tmp_path / name)
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("tries", [50])
@pytest.mark.parametrize("name", SIGNALS)
def test_killed_at_any_moment(victim: Victim, name: str, tries: int) -> None:
    seconds = max(victim.compile(model)["seconds"] for model in ("new.onnx", "old.onnx"))
    for path in victim.folder.glob("out.*"):
        path.unlink()
    assert victim.compile("new.onnx")["code"] == 0
    with_new = victim.files()
    for path in victim.folder.glob("out.*"):
        path.unlink()
    assert victim.compile("old.onnx")["code"] == 0
    with_old = victim.files()
    rng = random.Random(f"{name} {tries}")
    codes = [
        one_try(victim, SIGNALS[name], rng.uniform(0, seconds), with_old, with_new)
        for _ in range(tries)
    ]
    assert any(code != 0 for code in codes), "nothing was killed"


def one_try(
    victim: Victim, number: int, delay: float, old: dict[str, str], new: dict[str, str]
) -> int:
    """Kill one compile of the new model over the old one; the exit code of it."""
    code = victim.compile("new.onnx", number, delay)["code"]
    left = victim.files()
    inputs = ("old.onnx", "new.onnx")
    assert {n: left[n] for n in inputs} == {n: old[n] for n in inputs}, "an input was touched"
    assert left["out.onnx"] in (old["out.onnx"], new["out.onnx"]), f"half a model, exit {code}"
    assert victim.is_loaded()
    if number != signal.SIGKILL:
        assert code != 0 or left["out.onnx"] == new["out.onnx"]
        whole = old | new if left["out.onnx"] == new["out.onnx"] else old
        assert left.keys() == whole.keys(), f"strays, exit {code}"
    assert victim.compile("old.onnx")["code"] == 0
    left = victim.files()
    new_data = new.keys() - old.keys()
    assert left.keys() - new_data == old.keys(), "the next run has left what the killed one had"
    assert left["out.onnx"] == old["out.onnx"]
    for data in new_data & left.keys():
        (victim.folder / data).unlink()
    return code


def test_data_that_no_model_came_to_name_is_removed(victim: Victim) -> None:
    """As if killed between the two renames."""
    assert victim.compile("old.onnx")["code"] == 0
    before = victim.files()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    target = victim.folder / "out.onnx"
    prefix = temporary._prefix(target)
    (victim.folder / f"{prefix}{ended.pid}-00ff-1234.tmp").write_bytes(b"message")
    (victim.folder / "out.00ff.data").write_bytes(b"orphan")
    assert victim.compile("old.onnx")["code"] == 0
    assert victim.files() == before


def test_what_others_write_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    prefix = temporary._prefix(target)
    others = [
        f"{prefix}1-0-1234.tmp",  # a process that runs
        f"{temporary._prefix(tmp_path / 'other.onnx')}999999999-0-1234.tmp",  # another target
        f"{prefix}x-0-1234.tmp",
        ".out.onnx.tmp",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    with temporary.temporary_beside(target) as mine:
        mine.write_bytes(b"")
        assert temporary.clear_stale(target) == []
        assert mine.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(others)
