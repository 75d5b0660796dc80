"""The built-in dimension kernels: elements of small tensors, symbols included, by operator class.

dimension-compute uses these and nothing else. They know integers and truth values; floats are
moved, never computed.
"""

from __future__ import annotations

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.symbols import values_arithmetic, values_logic, values_moved
from foldline.stages.symbols.facts import ValueRule

VALUE_RULES: dict[type[NodeOp], ValueRule] = {
    **values_arithmetic.RULES,
    **values_logic.RULES,
    **values_moved.RULES,
}
