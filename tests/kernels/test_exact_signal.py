"""DFT and STFT in exact mode: values, lengths, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 22, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    if "output_count" in attributes and "output_count" not in entry.reserved:
        del attributes["output_count"]
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 15])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms(size: int, parts: int, dtype: Any) -> None:
    x = numbers(2, size, parts).astype(dtype)
    for attributes in ({}, {"inverse": 1}, {"onesided": 1}):
        for length in (None, np.array(size + 3), np.array(max(1, size - 2))):
            found = run("exact", "DFT", x, length, np.array(1), **attributes)
            expected = run("reference", "DFT", x, length, np.array(1), **attributes)
            assert (found.dtype, found.shape) == (dtype, expected.shape)
            np.testing.assert_allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-12)
    found = run("exact", "DFT", x, since=17, axis=1)
    assert found.tobytes() == run("exact", "DFT", x, None, np.array(1)).tobytes()


@pytest.mark.parametrize("length", [None, 8, 9])
def test_inverse_to_real_numbers(length: int | None) -> None:
    x = numbers(1, 5, 2)
    size = None if length is None else np.array(length)
    attributes = {"inverse": 1, "onesided": 1}
    found = run("exact", "DFT", x, size, np.array(1), **attributes)
    expected = run("reference", "DFT", x, size, np.array(1), **attributes)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames(onesided: int) -> None:
    x, window = numbers(2, 20, 1), np.abs(numbers(6))
    given = (x, np.array(3), window)
    found = run("exact", "STFT", *given, onesided=onesided)
    np.testing.assert_allclose(
        found, run("reference", "STFT", *given, onesided=onesided), atol=1e-5
    )
    given = (x, np.array(3), None, np.array(5))
    found = run("exact", "STFT", *given, onesided=onesided)
    np.testing.assert_allclose(
        found, run("reference", "STFT", *given, onesided=onesided), atol=1e-5
    )
    with pytest.raises(ValueError, match="frames of 21"):
        run("exact", "STFT", x, np.array(3), None, np.array(21))
    with pytest.raises(ValueError, match="a window of 6 for frames of 5"):
        run("exact", "STFT", x, np.array(3), window, np.array(5))


def test_wrong_signals() -> None:
    with pytest.raises(ValueError, match="axis is 2"):
        run("exact", "DFT", numbers(1, 4, 1), None, np.array(2))
    with pytest.raises(ValueError, match="must be 1"):
        run("exact", "DFT", numbers(1, 4, 3), None, np.array(1))
