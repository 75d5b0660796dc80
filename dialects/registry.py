"""All dialects at once, and the class of an operator by its ONNX name."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from foldline.dialects import com_microsoft, fused, onnx
from foldline.dialects.com_microsoft import COM_MICROSOFT
from foldline.dialects.fold import FOLD
from foldline.dialects.fused import FUSED
from foldline.dialects.onnx import ONNX
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.plan import PLAN

OPERATORS: dict[tuple[str, str], type[OnnxOp]] = {
    **onnx.OPERATORS,
    **com_microsoft.OPERATORS,
    **fused.OPERATORS,
}
"""The class of each known operator by domain and name."""

DIALECTS = (Builtin, ONNX, COM_MICROSOFT, FOLD, FUSED, PLAN)
"""Every dialect that a module of Foldline may hold."""


def operator_class(domain: str, op_type: str) -> type[OnnxOp] | None:
    """The class of an operator; None if nothing here defines it (it is an `onnx.custom` then).

    `domain` in canonical form: empty for ai.onnx.
    """
    return OPERATORS.get((domain, op_type))


def load_dialects(context: Context) -> None:
    """Load every dialect into a context, as parsing needs it."""
    for dialect in DIALECTS:
        context.load_dialect(dialect)
