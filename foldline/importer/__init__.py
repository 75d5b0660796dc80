"""From an ONNX file to the onnx dialect: one public function, `import_model`."""

from __future__ import annotations

from foldline.importer.model import Source, import_model

__all__ = ["Source", "import_model"]
