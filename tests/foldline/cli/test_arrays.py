from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.cli.arrays import load_npy, load_npz, retyped, save_npz
from foldline.support.errors import InvalidArgumentError


def test_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    half = np.array([1, 2], ml_dtypes.bfloat16)
    save_npz(
        path,
        {
            "file": np.array(1, np.float32),
            "a/b:0": half,
            "text": np.array(["a", "é"], object),
            "sequence": [np.ones(2), np.zeros((0, 3), np.int8)],
            "absent": None,
        },
    )
    loaded = load_npz(path)
    assert list(loaded) == ["file", "a/b:0", "text", "sequence.0", "sequence.1"]
    assert (loaded["file"].dtype, loaded["file"].shape) == (np.float32, ())
    assert retyped(loaded["a/b:0"], half.dtype).tolist() == half.tolist()
    assert loaded["text"].dtype == object
    assert loaded["text"].tolist() == ["a", "é"]
    assert loaded["sequence.1"].shape == (0, 3)


def test_npz_of_numpy(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(3))
    assert load_npz(str(tmp_path / "a.npz"))["x"].tolist() == [0, 1, 2]


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["x"]))
    assert load_npy(str(tmp_path / "a.npy")).dtype == object
    np.save(tmp_path / "b.npy", np.array([1.5], np.float16))
    assert load_npy(str(tmp_path / "b.npy")).dtype == np.float16


def test_only_bytes_of_lost_type_are_retyped() -> None:
    kept = np.ones(2, np.float32)
    assert retyped(kept, np.dtype(np.int32)) is kept


@pytest.mark.parametrize("load", [load_npy, load_npz])
@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04"])
def test_junk(tmp_path: Path, load: Callable[[str], Any], content: bytes) -> None:
    path = tmp_path / "junk"
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="of numbers or text"):
        load(str(path))


def test_pickles_are_refused(tmp_path: Path) -> None:
    pickled = np.array([{}], object)
    np.save(tmp_path / "a.npy", pickled)
    np.savez(tmp_path / "a.npz", x=pickled)
    with pytest.raises(InvalidArgumentError):
        load_npy(str(tmp_path / "a.npy"))
    with pytest.raises(InvalidArgumentError):
        load_npz(str(tmp_path / "a.npz"))
