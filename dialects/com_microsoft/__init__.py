"""The com_microsoft dialect: operators that ONNX Runtime adds to ONNX."""

from __future__ import annotations

from xdsl.ir import Dialect

from foldline.dialects.com_microsoft.signatures import EARLIER, SIGNATURES
from foldline.dialects.onnx.generate import declared
from foldline.dialects.onnx.schema import declare

OPERATORS = declared(SIGNATURES, "com_microsoft")
"""The class of each operator by domain and name."""

declare(EARLIER)

COM_MICROSOFT = Dialect("com_microsoft", list(OPERATORS.values()), [])
