"""The same model gives the same bytes: in another process, and when compiled a second time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import foldline
from tests.failures.case import CASES
from tests.failures.test_failure_cases import LEVELS
from tests.zoo import light_models

ROOT = Path(__file__).resolve().parents[2]
MODELS = [
    pytest.param(name, marks=[pytest.mark.slow] if name in light_models.HEAVY else [])
    for name in light_models.NAMES
]
COMPILABLE = [
    name for name, case in CASES.items() if not case.make()[2].rejected and not case.make()[2].big
]
LONG = {"long_chain"}
"""Cases of many nodes."""
SCRIPT = """
import hashlib, sys, foldline
from tests.failures import (  # noqa: F401
    control, elements, folding, fusion, interface, quantisation, shapes
)
from tests.failures.case import CASES
from tests.zoo import light_models

models = [light_models.load("squeezenet")]
models += [CASES[name].make()[0] for name in sys.argv[2:]]
for model in models:
    compiled = foldline.compile(model, options={"threads": int(sys.argv[1])})
    print(hashlib.sha256(compiled.to_bytes()).hexdigest())
"""


def _digests(seed: str, threads: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, threads, *COMPILABLE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.slow
def test_another_hash_seed_and_number_of_threads_write_the_same() -> None:
    first, second = _digests("1", "1"), _digests("4242", "2")
    assert len(first) == 1 + len(COMPILABLE)
    assert first == second


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in COMPILABLE],
)
def test_compiling_again_changes_nothing(name: str, level: str) -> None:
    options = {"oo.level": level}
    once = foldline.compile(CASES[name].make()[0], options=options).to_bytes()
    assert foldline.compile(once, options=options).to_bytes() == once


@pytest.mark.parametrize("name", MODELS)
def test_compiling_a_light_model_again_changes_nothing(name: str) -> None:
    once = foldline.compile(light_models.load(name)).to_bytes()
    assert foldline.compile(once).to_bytes() == once
