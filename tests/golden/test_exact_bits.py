"""The bits of exact mode are those on file: on any machine, in any process, at any level."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import foldline
from foldline.support.errors import InvalidOption
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from tests.golden.models import MODELS, digest, outputs

FILE = Path(__file__).with_name("exact_bits.txt")
ROOT = Path(__file__).resolve().parents[2]
ON_FILE = dict(line.split() for line in FILE.read_text().splitlines())


def test_t7_every_model_is_on_file() -> None:
    assert list(ON_FILE) == list(MODELS)
    assert len(set(ON_FILE.values())) == len(MODELS)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", MODELS)
def test_t7_bits(name: str, level: str) -> None:
    assert digest(outputs(name, level)) == ON_FILE[name]


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("name", MODELS)
def test_t3_t7_threads_and_plans_do_not_matter(name: str, threads: int) -> None:
    """The third run of a session has a plan."""
    assert digest(outputs(name, threads=threads, runs=3)) == ON_FILE[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "7"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX2 FMA3 AVX512F AVX512_SKX"},
    ],
    ids=["blas", "features"],
)
def test_t4_t7_another_blas_or_processor(settings: dict[str, str]) -> None:
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.golden.models"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == FILE.read_text()


SEEN_BY_PASSES = ("perceptron", "convolutions", "depthwise", "transformer", "recurrent")


def _can_be_disabled(name: str) -> bool:
    try:
        resolve({"mode": "exact", "passes.disable": [name]})
    except InvalidOption:
        return False
    return True


SWITCHED = [n for n, info in PASSES.items() if info.preserves_bits and _can_be_disabled(n)]


@pytest.mark.parametrize("switched", SWITCHED)
def test_t2_a_pass_that_preserves_bits_can_be_left_out(switched: str) -> None:
    for name in SEEN_BY_PASSES:
        golden = MODELS[name]()
        options = {"mode": "exact", "passes.disable": [switched]}
        compiled = foldline.compile(golden.model, options=options)
        assert digest(compiled.session().run(None, golden.feed)) == ON_FILE[name]


def test_most_passes_can_be_left_out() -> None:
    assert len(SWITCHED) > 20
    assert {"constant-folding", "conv-activation", "linear-pack-fuse"} <= set(SWITCHED)
