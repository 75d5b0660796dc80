"""The page on kernels does what it says: its code runs, and computes what ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from foldline.kernels import registry
from foldline.kernels.registry import compute, find_kernel
from tests.architecture.pages import blocks, run_code

PAGE = "adding-a-kernel.md"
X = np.float32([-np.inf, -1.0, -0.0, 0.5, 1.0, 2.0, np.inf, np.nan])


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the page, its kernels alone in the table."""
    monkeypatch.setattr(registry, "_TABLE", {})
    return run_code(PAGE, {"__name__": "page"})


def runtime(text: str, feed: dict[str, np.ndarray]) -> np.ndarray:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)[0]


def test_it_prints_what_it_says(capsys: pytest.CaptureFixture[str], page: dict[str, Any]) -> None:
    (said,) = blocks(PAGE, "text")
    printed = capsys.readouterr().out.replace("page.thresholded_relu ", "")
    assert printed == said


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_the_plain_kernel(page: dict[str, Any]) -> None:
    text = "g (float[8] x) => (float[8] y) { y = ThresholdedRelu <alpha = 0.7> (x) }"
    expected = runtime(text, {"x": X})
    plain = find_kernel("", "ThresholdedRelu", 10)
    assert plain is not None
    for inputs in (X, X.reshape(2, 4)[:, ::-1], X[:0], X[3]):
        got = compute(plain, [inputs], alpha=0.7)
        assert isinstance(got, np.ndarray)
        assert (got.shape, got.dtype) == (inputs.shape, inputs.dtype)
    assert compute(plain, [X], alpha=0.7).tobytes() == expected.tobytes()
    half = X.astype(ml_dtypes.bfloat16)
    assert compute(plain, [half], alpha=0.7).dtype == half.dtype
    own = X.copy()
    assert compute(plain, [own], alpha=0.7, out=own) is own
    assert own.tobytes() == expected.tobytes()
    other = np.empty_like(X)
    kept = X.copy()
    assert compute(plain, [kept], alpha=0.7, out=other) is other
    assert kept.tobytes() == X.tobytes()
    assert find_kernel("", "ThresholdedRelu", 9) is None
    assert find_kernel("", "ThresholdedRelu", 10, ("exact",)) is not None


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_the_maker(mode: str, page: dict[str, Any]) -> None:
    x = np.random.default_rng(0).random((2, 12, 3, 5), np.float32)
    text = "g (float[2,12,3,5] x) => (float[2,3,6,10] y) "
    text += f'{{ y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x) }}'
    expected = runtime(text, {"x": x})
    entry = find_kernel("", "DepthToSpace", 13)
    assert entry is not None
    assert entry.is_maker
    assert compute(entry, [x], blocksize=2, mode=mode).tobytes() == expected.tobytes()
    out = np.empty_like(expected)
    assert compute(entry, [x], blocksize=2, mode=mode, out=out) is out
    assert out.tobytes() == expected.tobytes()


def test_the_table_of_the_product_is_not_touched() -> None:
    entry = find_kernel("", "ThresholdedRelu", 10)
    assert entry is not None
    assert entry.where.startswith("foldline.")
