"""What optimisers got wrong, by public reports: right here at O2 and O3.

Each case is run as a session and, exported, by ONNX Runtime with optimisation off.

`known_failures.txt` lists what still fails, with its reason; each line must fail.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

import foldline
from foldline.support.errors import FoldlineError
from tests.failures import (  # noqa: F401
    control,
    elements,
    folding,
    fusion,
    interface,
    quantisation,
    shapes,
)
from tests.failures.case import CASES
from tests.failures.checks import (
    Run,
    check_structure,
    check_values,
    right_outputs,
    runtime,
    with_big_weights,
)

LEVELS = ("O2", "O3")
KNOWN = Path(__file__).parent / "known_failures.txt"


def known_failures() -> dict[str, str]:
    """Reasons by `case-level`."""
    lines = KNOWN.read_text().splitlines()
    rows = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {name: reason for name, reason in rows}


def _parameters() -> Iterator[object]:
    known = known_failures()
    for name, case in CASES.items():
        if case.make()[2].big is None:
            for level in LEVELS:
                key = f"{name}-{level}"
                reason = known.get(key)
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                yield pytest.param(name, level, id=key, marks=marks)


def test_every_case_is_here() -> None:
    assert len(CASES) == 88
    assert sum(len(case.reports) for case in CASES.values()) >= 149
    assert known_failures().keys() <= {f"{name}-{level}" for name in CASES for level in LEVELS}


@pytest.mark.parametrize(("name", "level"), list(_parameters()))
def test_case(name: str, level: str) -> None:
    original, feeds, expected = CASES[name].make()
    start = time.perf_counter()
    try:
        compiled = foldline.compile(original, options={"oo.level": level})
        optimised = compiled.to_proto()
    except FoldlineError:
        if expected.rejected or expected.may_be_rejected:
            return
        raise
    if expected.max_seconds is not None:
        assert time.perf_counter() - start < expected.max_seconds
    if expected.rejected:
        with pytest.raises(Exception):  # noqa: B017, PT011
            _run_as_file(optimised)(feeds)
        return
    onnx.checker.check_model(optimised, full_check=_passes_full_check(original))
    check_structure(original, optimised, expected)
    if expected.not_run:
        return
    outputs = right_outputs(original, feeds, expected)
    check_values(_run_as_file(optimised), feeds, outputs, expected)
    session = compiled.session()
    check_values(lambda feed: session.run(None, feed), feeds, outputs, expected)


def _passes_full_check(model: onnx.ModelProto) -> bool:
    """Inference of the library knows neither custom operators nor sparse initializers."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _run_as_file(model: onnx.ModelProto) -> Run:
    onnx.checker.check_model(model)
    return runtime(model)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_more_than_two_gigabytes(level: str, tmp_path: Path) -> None:
    original, feeds, expected = CASES["big_over_2gb"].make()
    assert expected.big is not None
    path = with_big_weights(original, expected.big, tmp_path)
    compiled = foldline.compile(path, options={"oo.level": level})
    outputs = right_outputs(original, feeds, expected)
    session = compiled.session()
    check_values(lambda feed: session.run(None, feed), feeds, outputs, expected)
    compiled.save(tmp_path / "out.onnx")
    check_structure(original, onnx.load(tmp_path / "out.onnx", load_external_data=False), expected)
    check_values(runtime(tmp_path / "out.onnx"), feeds, outputs, expected)
