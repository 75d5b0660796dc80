"""The dialects of Foldline: ONNX models as IR, facts about them, and what they are lowered to."""

from foldline.dialects.registry import DIALECTS, OPERATORS, load_dialects, operator_class

__all__ = ["DIALECTS", "OPERATORS", "load_dialects", "operator_class"]
