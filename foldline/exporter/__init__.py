"""From the onnx dialect to ONNX: `export_model` makes the message, `write_model` the file."""

from __future__ import annotations

from foldline.exporter.files import write_model
from foldline.exporter.graph import ExternalPolicy, ValueInfoPolicy
from foldline.exporter.model import FusedPolicy, export_model

__all__ = ["ExternalPolicy", "FusedPolicy", "ValueInfoPolicy", "export_model", "write_model"]
