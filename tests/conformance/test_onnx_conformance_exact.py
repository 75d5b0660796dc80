"""The backend suite of the onnx package in exact mode, at O3."""

from __future__ import annotations

from tests.conformance import suite

globals().update(suite.unittest_classes(suite.ExactBackend, __name__))
