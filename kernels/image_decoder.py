"""ImageDecoder 20, by Pillow, which is optional: it is imported when the kernel runs."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np

from foldline.kernels.registry import Array, kernel

_PILLOW_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@kernel("ImageDecoder")
def image_decoder(encoded_stream: Array, *, pixel_format: str = "RGB") -> Array:
    """ImageDecoder 20: the uint8 image `(height, width, channels)` of an encoded file.

    Formats are those of the installed Pillow. `pixel_format` is RGB, BGR or Grayscale, which has
    one channel. What cannot be decoded gives an image of height and width 0.

    Raises ImportError when Pillow is missing, ValueError for another `pixel_format`.
    """
    if pixel_format not in _PILLOW_MODES:
        raise ValueError(f"ImageDecoder: pixel_format is {pixel_format!r}")
    pillow = _pillow()
    mode = _PILLOW_MODES[pixel_format]
    try:
        with pillow.open(io.BytesIO(encoded_stream.tobytes())) as image:
            pixels = np.array(image.convert(mode), np.uint8)
    except (OSError, SyntaxError, ValueError):
        # Pillow's ways to say that the data are broken; the operator's is an empty image.
        pixels = np.empty((0, 0, len(mode)), np.uint8)
    pixels = pixels.reshape(*pixels.shape[:2], len(mode))
    return pixels[..., ::-1].copy() if pixel_format == "BGR" else pixels


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError as error:
        raise ImportError(
            "ImageDecoder needs the package pillow, which is not installed: pip install pillow"
        ) from error
