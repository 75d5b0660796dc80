"""From an ONNX file to the onnx dialect: `import_model`, and `import_function` for a part."""

from __future__ import annotations

from foldline.importer.model import import_function, import_model
from foldline.importer.source import Source, blamed_on

__all__ = ["Source", "blamed_on", "import_function", "import_model"]
