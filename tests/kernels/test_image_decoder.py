"""ImageDecoder, on files made by Pillow itself; without Pillow only the message is tested."""

import io
import sys

import numpy as np
import pytest

from foldline.kernels.image_decoder import image_decoder

PIXELS = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [10, 20, 30]]], np.uint8)


def encoded(pixels, kind, **options):
    image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, kind, **options)
    return np.frombuffer(stream.getvalue(), np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats(kind):
    result = image_decoder(encoded(PIXELS, kind))
    assert result.dtype == np.uint8
    assert result.tolist() == PIXELS.tolist()


def test_pixel_formats():
    stream = encoded(PIXELS, "PNG")
    assert image_decoder(stream, pixel_format="BGR").tolist() == PIXELS[..., ::-1].tolist()
    grey = image_decoder(stream, pixel_format="Grayscale")
    assert grey.shape == (2, 2, 1)
    assert grey.ravel().tolist() == [76, 150, 29, 18]
    with pytest.raises(ValueError, match="pixel_format is 'CMYK'"):
        image_decoder(stream, pixel_format="CMYK")


def test_grey_and_transparent_files_become_rgb():
    grey = encoded(PIXELS[..., 0], "PNG")
    assert image_decoder(grey)[1, 1].tolist() == [10, 10, 10]
    transparent = np.dstack([PIXELS, np.full((2, 2), 7, np.uint8)])
    assert image_decoder(encoded(transparent, "PNG")).tolist() == PIXELS.tolist()


@pytest.mark.parametrize("damage", [lambda s: s[:0], lambda s: s[: len(s) // 2], lambda s: s[9:]])
def test_what_cannot_be_decoded_is_empty(damage):
    stream = damage(encoded(PIXELS, "PNG"))
    assert image_decoder(stream).shape == (0, 0, 3)
    assert image_decoder(stream, pixel_format="Grayscale").shape == (0, 0, 1)


def test_missing_pillow_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    with pytest.raises(ImportError, match="pip install pillow"):
        image_decoder(np.zeros(4, np.uint8))
