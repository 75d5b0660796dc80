"""From an ONNX file to the onnx dialect: `import_model`, and `import_function` for a part."""

from __future__ import annotations

from foldline.importer.model import Source, import_function, import_model

__all__ = ["Source", "import_function", "import_model"]
