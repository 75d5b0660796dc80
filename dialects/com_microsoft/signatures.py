"""Signatures of operators that ONNX Runtime adds to ONNX, one row an operator.

Source: `docs/ContribOperators.md` of ONNX Runtime 1.32, operator set version 1. The row of
SimplifiedLayerNormalization is in the default domain, as ONNX Runtime writes it to files.

A parameter is `name:type`, `?` after it marks it optional, `*` variadic with types of their own.
An attribute is `name:KIND`, followed by `!` if it is required or `=default`.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto

from foldline.dialects.onnx.schema import AttributeSchema, AttributeValue, Parameter, Signature

COM_MICROSOFT = "com.microsoft"
UNBOUNDED = 2**31 - 1

_REAL = ("float", "float16", "bfloat16", "double")
_HALF = ("float", "float16", "bfloat16")
_BYTE = ("int8", "uint8")
_WINDOW = "auto_pad:STRING=NOTSET dilations:INTS pads:INTS strides:INTS"
_BINARY = "A:T A_scale:float A_zero_point:T? B:T B_scale:float B_zero_point:T? C_scale:float"
_ATTENTION = "mask_filter_value:FLOAT num_heads:INT! scale:FLOAT unidirectional:INT=0"


def _row(
    op_type: str,
    inputs: str,
    outputs: str,
    attributes: str = "",
    domain: str = COM_MICROSOFT,
    **types: tuple[str, ...],
) -> Signature:
    """`types`: the element types of each type variable."""
    formal_inputs = tuple(_parameter(text, types) for text in inputs.split())
    formal_outputs = tuple(_parameter(text, types) for text in outputs.split())
    return Signature(
        domain,
        op_type,
        1,
        formal_inputs,
        formal_outputs,
        {row.name: row for row in map(_attribute, attributes.split())},
        _least(formal_inputs),
        UNBOUNDED if formal_inputs[-1].is_variadic else len(formal_inputs),
        _least(formal_outputs),
        len(formal_outputs),
        is_deprecated=False,
        has_function=False,
    )


def _parameter(text: str, types: dict[str, tuple[str, ...]]) -> Parameter:
    name, _, variable = text.rstrip("?*").partition(":")
    allowed = frozenset(f"tensor({element})" for element in types.get(variable, (variable,)))
    if variable not in types:
        variable = f"tensor({variable})"
    return Parameter(name, allowed, variable, text[-1] == "?", text[-1] == "*", text[-1] != "*")


def _attribute(text: str) -> AttributeSchema:
    name, _, rest = text.rstrip("!").partition(":")
    kind, _, default = rest.partition("=")
    code = AttributeProto.AttributeType.Value(kind)
    return AttributeSchema(name, code, text[-1] == "!", _value(kind, default) if default else None)


def _value(kind: str, text: str) -> AttributeValue:
    match kind:
        case "INT":
            return int(text)
        case "FLOAT":
            return float(np.float32(text))
        case _:
            return text


def _least(parameters: tuple[Parameter, ...]) -> int:
    """So many are given at least: up to the last that is not optional."""
    return max((i + 1 for i, row in enumerate(parameters) if not row.is_optional), default=0)


SIGNATURES = (
    _row(
        "Attention",
        "input:T weights:T bias:T? mask_index:M? past:T? attention_bias:T? past_sequence_length:M?",
        "output:T present:T?",
        f"{_ATTENTION} do_rotary:INT past_present_share_buffer:INT qkv_hidden_sizes:INTS"
        " rotary_embedding_dim:INT",
        T=_HALF,
        M=("int32",),
    ),
    _row("BiasGelu", "A:T B:T", "C:T", T=_REAL),
    _row(
        "DynamicQuantizeLSTM",
        "X:T W:T2 R:T2 B:T? sequence_lens:T1? initial_h:T? initial_c:T? P:T? W_scale:T"
        " W_zero_point:T2 R_scale:T R_zero_point:T2",
        "Y:T? Y_h:T? Y_c:T?",
        "activation_alpha:FLOATS activation_beta:FLOATS activations:STRINGS clip:FLOAT"
        " direction:STRING=forward hidden_size:INT input_forget:INT=0",
        T=("float",),
        T1=("int32",),
        T2=_BYTE,
    ),
    _row(
        "DynamicQuantizeMatMul",
        "A:T1 B:T2 b_scale:T1 b_zero_point:T2? bias:T1?",
        "Y:T1",
        T1=("float",),
        T2=_BYTE,
    ),
    _row(
        "EmbedLayerNormalization",
        "input_ids:T1 segment_ids:T1? word_embedding:T position_embedding:T"
        " segment_embedding:T? gamma:T beta:T mask:T1? position_ids:T1?",
        "output:T mask_index:T1? embedding_sum:T?",
        "epsilon:FLOAT=1e-12 mask_index_type:INT",
        T=("float", "float16"),
        T1=("int32",),
    ),
    _row("FastGelu", "X:T bias:T?", "Y:T", T=_REAL),
    _row(
        "FusedConv",
        "X:T W:T B:T? Z:T?",
        "Y:T",
        f"{_WINDOW} kernel_shape:INTS group:INT=1 activation:STRING activation_params:FLOATS",
        T=("float", "float16", "double"),
    ),
    _row(
        "FusedGemm",
        "A:T B:T C:T?",
        "Y:T",
        "activation:STRING activation_alpha:FLOAT activation_beta:FLOAT activation_gamma:FLOAT"
        " alpha:FLOAT=1 beta:FLOAT=1 transA:INT=0 transB:INT=0",
        T=("float", "float16", "double", "int32", "int64", "uint32", "uint64"),
    ),
    _row(
        "FusedMatMul",
        "A:T B:T",
        "Y:T",
        "alpha:FLOAT=1 transA:INT=0 transB:INT=0 transBatchA:INT=0 transBatchB:INT=0",
        T=_REAL,
    ),
    _row("Gelu", "X:T", "Y:T", T=_REAL),
    _row(
        "MatMulIntegerToFloat",
        "A:T1 B:T2 a_scale:T3 b_scale:T3 a_zero_point:T1? b_zero_point:T2? bias:T3?",
        "Y:T3",
        T1=_BYTE,
        T2=_BYTE,
        T3=("float", "float16"),
    ),
    _row(
        "MultiHeadAttention",
        "query:T key:T? value:T? bias:T? key_padding_mask:M? attention_bias:T? past_key:T?"
        " past_value:T? past_sequence_length:M? cache_indirection:M?",
        "output:T present_key:T? present_value:T? qk:QK?",
        _ATTENTION,
        T=_HALF,
        M=("int32",),
        QK=_HALF,
    ),
    _row("NhwcMaxPool", "x:T", "y:T", f"{_WINDOW} kernel_shape:INTS! ceil_mode:INT=0", T=_BYTE),
    _row(
        "QAttention",
        "input:T1 weight:T2 bias:T3 input_scale:T3 weight_scale:T3 mask_index:T4?"
        " input_zero_point:T1? weight_zero_point:T2? past:T3?",
        "output:T3 present:T3?",
        f"{_ATTENTION} do_rotary:INT past_present_share_buffer:INT",
        T1=_BYTE,
        T2=_BYTE,
        T3=("float", "float16"),
        T4=("int32",),
    ),
    _row("QLinearAdd", f"{_BINARY} C_zero_point:T?", "C:T", T=_BYTE),
    _row(
        "QLinearConcat",
        "Y_scale:TF Y_zero_point:T8 inputs:TV*",
        "Y:T8",
        "axis:INT!",
        TF=("float",),
        T8=_BYTE,
        TV=("float", *_BYTE),
    ),
    _row(
        "QLinearGlobalAveragePool",
        "X:T x_scale:float x_zero_point:T y_scale:float y_zero_point:T",
        "Y:T",
        "channels_last:INT=0",
        T=_BYTE,
    ),
    _row(
        "QLinearLeakyRelu",
        "X:T X_scale:float X_zero_point:T? Y_scale:float Y_zero_point:T?",
        "Y:T",
        "alpha:FLOAT=0.01",
        T=_BYTE,
    ),
    _row("QLinearMul", f"{_BINARY} C_zero_point:T?", "C:T", T=_BYTE),
    _row(
        "QLinearSigmoid",
        "X:T X_scale:float X_zero_point:T? Y_scale:float Y_zero_point:T?",
        "Y:T",
        T=_BYTE,
    ),
    _row(
        "QLinearSoftmax",
        "X:T X_scale:float x_zero_point:T? y_scale:float y_zero_point:T",
        "Y:T",
        "axis:INT=-1 opset:INT!",
        T=_BYTE,
    ),
    _row("QuickGelu", "X:T", "Y:T", "alpha:FLOAT=1.702", T=_REAL),
    _row(
        "SimplifiedLayerNormalization",
        "X:T scale:V",
        "Y:V inv_std_var:U?",
        "axis:INT=-1 epsilon:FLOAT=1e-5 stash_type:INT=1",
        domain="",
        T=_REAL,
        U=("float", "double"),
        V=_REAL,
    ),
    _row(
        "SkipLayerNormalization",
        "input:T skip:T gamma:T beta:T? bias:T?",
        "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
        "epsilon:FLOAT=1e-12",
        T=_HALF,
        U=("float",),
    ),
    _row(
        "SkipSimplifiedLayerNormalization",
        "input:T skip:T gamma:T bias:T?",
        "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
        "epsilon:FLOAT=1e-12",
        T=_HALF,
        U=("float",),
    ),
)
