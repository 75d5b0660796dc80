"""The manifest of the zoo, the inputs and the derived models agree."""

from __future__ import annotations

import re
from importlib.metadata import version

import numpy as np
import pytest

from benchmarks.zoo import derived, kinds, wheels
from benchmarks.zoo_inputs import INPUTS, make_inputs


def test_every_model_has_inputs() -> None:
    assert set(kinds()) == set(INPUTS)
    assert len(kinds()) == 41


def test_every_file_is_pinned() -> None:
    for requirement, models in wheels().items():
        assert re.fullmatch(r"[\w.-]+==[\w.]+", requirement)
        assert all(re.fullmatch("[0-9a-f]{64}", model.sha256) for model in models)


def test_sources_of_derived_models_exist() -> None:
    assert {model.source for model in derived()} <= set(kinds())


def test_inputs_are_the_same_for_a_seed_only() -> None:
    first, again, other = (make_inputs("silero_vad", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first["input"], again["input"], strict=True)
    assert not np.array_equal(first["input"], other["input"])
    assert first["sr"].shape == ()
    assert first["sr"].dtype == np.int64


def test_inputs_take_other_dims() -> None:
    assert make_inputs("minilm_l3", N=2, S=5)["input_ids"].shape == (2, 5)


@pytest.mark.skipif(version("onnx") != "1.23.2", reason="the manifest names another release")
def test_light_models_of_the_manifest_are_those_installed() -> None:
    import hashlib

    from tests.zoo import light_models

    (models,) = (models for name, models in wheels().items() if name.startswith("onnx=="))
    installed = {f"light_{name}" for name in light_models.NAMES}
    assert {model.id for model in models} == installed
    for model in models:
        data = (light_models.FOLDER / f"{model.id}.onnx").read_bytes()
        assert hashlib.sha256(data).hexdigest() == model.sha256
