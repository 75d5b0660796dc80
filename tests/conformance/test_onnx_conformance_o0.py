"""The backend suite of the onnx package on models as they are imported, at O0."""

from __future__ import annotations

from tests.conformance import suite

globals().update(suite.unittest_classes(suite.AsImportedBackend, __name__))
