"""The fused operators, in the form of a table.

They stand in modules only: files get the standard operators that each of them is made of, see
`expansions`. `activation` names an operator of ONNX that is applied to the result, with its
attributes, or the bounds of Clip, in `activation_params`.
"""

from __future__ import annotations

from foldline.dialects.com_microsoft.rows import row

FUSED_DOMAIN = "foldline"

_REAL = ("float", "double", "float16", "bfloat16")
_ACTIVATION = "activation:STRING activation_params:FLOATS"
_WINDOW = (
    "auto_pad:STRING=NOTSET dilations:INTS group:INT=1 kernel_shape:INTS pads:INTS strides:INTS"
)

SIGNATURES = (
    row("Conv", "X:T W:T B:T?", "Y:T", f"{_WINDOW} {_ACTIVATION}", FUSED_DOMAIN, T=_REAL),
    row("Gelu", "X:T", "Y:T", "approximate:STRING=none", FUSED_DOMAIN, T=_REAL),
    row("Linear", "A:T B:T C:T?", "Y:T", f"transB:INT=0 {_ACTIVATION}", FUSED_DOMAIN, T=_REAL),
    row("Swish", "X:T", "Y:T", "alpha:FLOAT=1", FUSED_DOMAIN, T=_REAL),
)
