"""The fused operators, in the form of a table.

They stand in modules only: files get the standard operators that each of them is made of, see
`expansions`. `activation` names an operator of ONNX that is applied to the result, with its
attributes, or the bounds of Clip, in `activation_params`. `product` of Linear is the operator that
files get, MatMul or Gemm. `scale` and `B` of GroupNormalization
have one entry a channel and broadcast to X; `shape` is the shape of X, which only files need.
`inverse` of RMSNormalization: whether files multiply by the inverse of the root, as what was fused.
Quantised operators take a tensor of codes with its scale and zero point, as those of ONNX do.
`bias_first` says that the bias is the first operand of its Add, which only files need. They also
need `bias` of QLinearGemm, which C is as integers.
"""

from __future__ import annotations

from foldline.dialects.com_microsoft.rows import row

FUSED_DOMAIN = "foldline"

_REAL = ("float", "double", "float16", "bfloat16")
_ACTIVATION = "activation:STRING activation_params:FLOATS"
_WINDOW = (
    "auto_pad:STRING=NOTSET dilations:INTS group:INT=1 kernel_shape:INTS pads:INTS strides:INTS"
)
_IMAGE = f"{_WINDOW} output_padding:INTS output_shape:INTS"
_CONV = "X:T W:T B:T? Z:T?"
_ROWS = "axis:INT=-1 epsilon:FLOAT=0.00001 stash_type:INT=1"
_GROUPS = "epsilon:FLOAT=0.00001 num_groups:INT!"

_SHARED = (
    "groups:INT=1 guarded:INT=0 key_perm:INTS kv_heads:INT=0 mask_keeps:INT=1 mask_value:FLOAT "
    "output_perm:INTS query_perm:INTS scale:FLOAT=1 value_perm:INTS"
)
_LINEAR = f"product:STRING=MatMul transB:INT=0 {_ACTIVATION}"
_MASK = (*_REAL, "bool")
_BYTE = ("int8", "uint8")
_BYTES = {"T": _BYTE, "U": _BYTE}
_TO_FLOAT = "bias_first:INT=0"
_CODES = "X:T x_scale:float x_zero_point:T?"
_CODES_OUT = "y_scale:float y_zero_point:T"
_TWO_CODES = f"A:T a_scale:float a_zero_point:T? B:T b_scale:float b_zero_point:T? {_CODES_OUT}"

SIGNATURES = (
    row("Attention", "Q:T K:T V:T M:M?", "Y:T", _SHARED, FUSED_DOMAIN, T=_REAL, M=_MASK),
    row("Conv", _CONV, "Y:T", f"{_WINDOW} {_ACTIVATION}", FUSED_DOMAIN, T=_REAL),
    row("ConvTranspose", _CONV, "Y:T", f"{_IMAGE} {_ACTIVATION}", FUSED_DOMAIN, T=_REAL),
    row(
        "ConvIntegerToFloat",
        "X:T W:U x_zero_point:T? w_zero_point:U? scale:float B:int32? bias:float?",
        "Y:float",
        f"{_WINDOW} {_TO_FLOAT}",
        FUSED_DOMAIN,
        **_BYTES,
    ),
    row(
        "DynamicQuantizeConv",
        "X:float W:U w_zero_point:U? w_scale:float B:int32? bias:float?",
        "Y:float",
        f"{_WINDOW} {_TO_FLOAT}",
        FUSED_DOMAIN,
        U=_BYTE,
    ),
    row(
        "DynamicQuantizeMatMul",
        "X:float B:U b_zero_point:U? b_scale:float bias:float?",
        "Y:float",
        _TO_FLOAT,
        FUSED_DOMAIN,
        U=_BYTE,
    ),
    row("Gelu", "X:T", "Y:T", "approximate:STRING=none", FUSED_DOMAIN, T=_REAL),
    row(
        "GroupNormalization", "X:T scale:T B:T shape:int64?", "Y:T", _GROUPS, FUSED_DOMAIN, T=_REAL
    ),
    row("HardSwish", "X:T", "Y:T", "", FUSED_DOMAIN, T=_REAL),
    row("LayerNormalization", "X:T scale:T B:T?", "Y:T", _ROWS, FUSED_DOMAIN, T=_REAL),
    row("Linear", "A:T B:T C:T?", "Y:T", _LINEAR, FUSED_DOMAIN, T=_REAL),
    row(
        "MatMulIntegerToFloat",
        "A:T B:U a_zero_point:T? b_zero_point:U? scale:float bias:float?",
        "Y:float",
        _TO_FLOAT,
        FUSED_DOMAIN,
        **_BYTES,
    ),
    row("Mish", "X:T", "Y:T", "", FUSED_DOMAIN, T=_REAL),
    row(
        "QLinearActivation",
        f"{_CODES} {_CODES_OUT}",
        "Y:T",
        _ACTIVATION,
        FUSED_DOMAIN,
        T=_BYTE,
    ),
    row("QLinearAdd", _TWO_CODES, "Y:T", "", FUSED_DOMAIN, T=_BYTE),
    row(
        "QLinearBatchNormalization",
        f"{_CODES} {_CODES_OUT} scale:float B:float mean:float var:float",
        "Y:T",
        "epsilon:FLOAT=0.00001",
        FUSED_DOMAIN,
        T=_BYTE,
    ),
    row(
        "QLinearGemm",
        "A:T a_scale:float a_zero_point:T B:U b_scale:float b_zero_point:U "
        f"{_CODES_OUT} C:int32 bias:float",
        "Y:T",
        "transB:INT=0",
        FUSED_DOMAIN,
        **_BYTES,
    ),
    row("QLinearGlobalAveragePool", f"{_CODES} {_CODES_OUT}", "Y:T", "", FUSED_DOMAIN, T=_BYTE),
    row("QLinearMul", _TWO_CODES, "Y:T", "", FUSED_DOMAIN, T=_BYTE),
    row("RotaryEmbedding", "X:T C:T S:T", "Y:T", "interleaved:INT=0", FUSED_DOMAIN, T=_REAL),
    row("RMSNormalization", "X:T scale:T", "Y:T", f"{_ROWS} inverse:INT=0", FUSED_DOMAIN, T=_REAL),
    row(
        "SkipLayerNormalization",
        "X:T Z:T scale:T B:T?",
        "Y:T S:T?",
        _ROWS,
        FUSED_DOMAIN,
        T=_REAL,
    ),
    row(
        "SkipRMSNormalization",
        "X:T Z:T scale:T",
        "Y:T S:T?",
        f"{_ROWS} inverse:INT=0",
        FUSED_DOMAIN,
        T=_REAL,
    ),
    row("Swish", "X:T", "Y:T", "alpha:FLOAT=1", FUSED_DOMAIN, T=_REAL),
)
