"""Signatures of operators that ONNX Runtime adds to ONNX, one row an operator.

Source: `docs/ContribOperators.md` of ONNX Runtime 1.32, operator set version 1. The row of
SimplifiedLayerNormalization is in the default domain, as ONNX Runtime writes it to files.

`rows` says how they are written.
"""

from __future__ import annotations

from foldline.dialects.com_microsoft.rows import row

_REAL = ("float", "float16", "bfloat16", "double")
_HALF = ("float", "float16", "bfloat16")
_BYTE = ("int8", "uint8")
_FEW_BITS = (*_BYTE, "int16", "uint16", "int4", "uint4")
_WINDOW = "auto_pad:STRING=NOTSET dilations:INTS pads:INTS strides:INTS"
_BINARY = "A:T A_scale:float A_zero_point:T? B:T B_scale:float B_zero_point:T? C_scale:float"
_ATTENTION = "mask_filter_value:FLOAT num_heads:INT! scale:FLOAT unidirectional:INT=0"

SIGNATURES = (
    row(
        "Attention",
        "input:T weights:T bias:T? mask_index:M? past:T? attention_bias:T? past_sequence_length:M?",
        "output:T present:T?",
        f"{_ATTENTION} do_rotary:INT past_present_share_buffer:INT qkv_hidden_sizes:INTS"
        " rotary_embedding_dim:INT",
        T=_HALF,
        M=("int32",),
    ),
    row("BiasGelu", "A:T B:T", "C:T", T=_REAL),
    row(
        "DequantizeLinear",
        "x:T1 x_scale:T2 x_zero_point:T1?",
        "y:T2",
        "axis:INT",
        T1=(*_FEW_BITS, "int32"),
        T2=("float", "float16"),
    ),
    row(
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
    row(
        "DynamicQuantizeMatMul",
        "A:T1 B:T2 b_scale:T1 b_zero_point:T2? bias:T1?",
        "Y:T1",
        T1=("float",),
        T2=_BYTE,
    ),
    row(
        "EmbedLayerNormalization",
        "input_ids:T1 segment_ids:T1? word_embedding:T position_embedding:T"
        " segment_embedding:T? gamma:T beta:T mask:T1? position_ids:T1?",
        "output:T mask_index:T1? embedding_sum:T?",
        "epsilon:FLOAT=1e-12 mask_index_type:INT",
        T=("float", "float16"),
        T1=("int32",),
    ),
    row("FastGelu", "X:T bias:T?", "Y:T", T=_REAL),
    row(
        "FusedConv",
        "X:T W:T B:T? Z:T?",
        "Y:T",
        f"{_WINDOW} kernel_shape:INTS group:INT=1 activation:STRING activation_params:FLOATS",
        T=("float", "float16", "double"),
    ),
    row(
        "FusedGemm",
        "A:T B:T C:T?",
        "Y:T",
        "activation:STRING activation_alpha:FLOAT activation_beta:FLOAT activation_gamma:FLOAT"
        " alpha:FLOAT=1 beta:FLOAT=1 transA:INT=0 transB:INT=0",
        T=("float", "float16", "double", "int32", "int64", "uint32", "uint64"),
    ),
    row(
        "FusedMatMul",
        "A:T B:T",
        "Y:T",
        "alpha:FLOAT=1 transA:INT=0 transB:INT=0 transBatchA:INT=0 transBatchB:INT=0",
        T=_REAL,
    ),
    row("Gelu", "X:T", "Y:T", T=_REAL),
    row(
        "GroupQueryAttention",
        "query:T key:T? value:T? past_key:T_CACHE? past_value:T_CACHE? seqlens_k:M"
        " total_sequence_length:M cos_cache:T? sin_cache:T? position_ids:int64? attention_bias:T?"
        " head_sink:T? k_scale:T_KV_SCALE? v_scale:T_KV_SCALE? q_norm_weight:T? k_norm_weight:T?"
        " query_seqlens:M?",
        "output:T present_key:T_CACHE? present_value:T_CACHE? output_qk:T?",
        "num_heads:INT! kv_num_heads:INT! causal:INT=1 do_rotary:INT k_norm_epsilon:FLOAT"
        " k_quant_type:STRING=NONE kv_cache_bit_width:INT local_window_size:INT=-1"
        " q_norm_epsilon:FLOAT qk_norm_epsilon:FLOAT=1e-6 qk_output:INT=0 rotary_interleaved:INT"
        " scale:FLOAT sliding_window_cache:INT=0 smooth_softmax:INT=-1 softcap:FLOAT"
        " v_quant_type:STRING=NONE",
        T=_HALF,
        T_CACHE=(*_HALF, *_BYTE, "float8e4m3fn"),
        T_KV_SCALE=("float",),
        M=("int32",),
    ),
    row(
        "MatMulIntegerToFloat",
        "A:T1 B:T2 a_scale:T3 b_scale:T3 a_zero_point:T1? b_zero_point:T2? bias:T3?",
        "Y:T3",
        T1=_BYTE,
        T2=_BYTE,
        T3=("float", "float16"),
    ),
    row(
        "MatMulNBits",
        "A:T1 B:T2 scales:T1 zero_points:T3? g_idx:T4? bias:T1?",
        "Y:T1",
        "K:INT! N:INT! block_size:INT! bits:INT=4 accuracy_level:INT=0 weight_prepacked:INT=0",
        T1=_HALF,
        T2=("uint8",),
        T3=("uint8", *_HALF),
        T4=("int32",),
    ),
    row(
        "MultiHeadAttention",
        "query:T key:T? value:T? bias:T? key_padding_mask:M? attention_bias:T? past_key:T?"
        " past_value:T? past_sequence_length:M? cache_indirection:M?",
        "output:T present_key:T? present_value:T? qk:QK?",
        _ATTENTION,
        T=_HALF,
        M=("int32",),
        QK=_HALF,
    ),
    row("NhwcMaxPool", "x:T", "y:T", f"{_WINDOW} kernel_shape:INTS! ceil_mode:INT=0", T=_BYTE),
    row(
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
    row(
        "QEmbedLayerNormalization",
        "input_ids:T1 segment_ids:T1? word_embedding_quant:T2 position_embedding_quant:T2"
        " segment_embedding:T2? gamma_quant:T2 beta_quant:T2 mask:T1? word_embedding_scale:T"
        " position_embedding_scale:T segment_embedding_scale:T? gamma_scale:T beta_scale:T"
        " word_embedding_zero_point:T2 position_embedding_zero_point:T2"
        " segment_embedding_zero_point:T2? gamma_zero_point:T2 beta_zero_point:T2",
        "layernorm_out:T mask_index_out:T1",
        "epsilon:FLOAT=1e-12",
        T=("float",),
        T1=("int32",),
        T2=_BYTE,
    ),
    row(
        "QGemm",
        "A:TA a_scale:T a_zero_point:TA B:TB b_scale:T b_zero_point:TB C:TC? y_scale:T?"
        " y_zero_point:TYZ?",
        "Y:TY",
        "alpha:FLOAT=1 transA:INT=0 transB:INT=0",
        T=("float",),
        TA=_BYTE,
        TB=_BYTE,
        TC=("int32",),
        TYZ=_BYTE,
        TY=("float", *_BYTE),
    ),
    row("QLinearAdd", f"{_BINARY} C_zero_point:T?", "C:T", T=_BYTE),
    row(
        "QLinearAveragePool",
        "X:T x_scale:float x_zero_point:T? y_scale:float y_zero_point:T?",
        "Y:T",
        "auto_pad:STRING=NOTSET ceil_mode:INT=0 channels_last:INT=0 count_include_pad:INT=0"
        " kernel_shape:INTS! pads:INTS strides:INTS",
        T=_BYTE,
    ),
    row(
        "QLinearConcat",
        "Y_scale:TF Y_zero_point:T8 inputs:TV*",
        "Y:T8",
        "axis:INT!",
        TF=("float",),
        T8=_BYTE,
        TV=("float", *_BYTE),
    ),
    row(
        "QLinearConv",
        "x:T1 x_scale:float x_zero_point:T1 w:T2 w_scale:float w_zero_point:T2 y_scale:float"
        " y_zero_point:T3 B:T4?",
        "y:T3",
        f"{_WINDOW} kernel_shape:INTS group:INT=1 channels_last:INT=0",
        T1=_BYTE,
        T2=_BYTE,
        T3=_BYTE,
        T4=("int32",),
    ),
    row(
        "QLinearGlobalAveragePool",
        "X:T x_scale:float x_zero_point:T y_scale:float y_zero_point:T",
        "Y:T",
        "channels_last:INT=0",
        T=_BYTE,
    ),
    row(
        "QLinearLeakyRelu",
        "X:T X_scale:float X_zero_point:T? Y_scale:float Y_zero_point:T?",
        "Y:T",
        "alpha:FLOAT=0.01",
        T=_BYTE,
    ),
    row("QLinearMul", f"{_BINARY} C_zero_point:T?", "C:T", T=_BYTE),
    row(
        "QLinearSigmoid",
        "X:T X_scale:float X_zero_point:T? Y_scale:float Y_zero_point:T?",
        "Y:T",
        T=_BYTE,
    ),
    row(
        "QLinearSoftmax",
        "X:T X_scale:float x_zero_point:T? y_scale:float y_zero_point:T",
        "Y:T",
        "axis:INT=-1 opset:INT!",
        T=_BYTE,
    ),
    row(
        "QLinearWhere",
        "condition:B X:T x_scale:TF x_zero_point:T Y:T y_scale:TF y_zero_point:T z_scale:TF"
        " z_zero_point:T",
        "Z:T",
        B=("bool",),
        T=_BYTE,
        TF=("float",),
    ),
    row(
        "QuantizeLinear",
        "x:T1 y_scale:T1 y_zero_point:T2?",
        "y:T2",
        "axis:INT",
        T1=("float", "float16"),
        T2=_FEW_BITS,
    ),
    row("QuickGelu", "X:T", "Y:T", "alpha:FLOAT=1.702", T=_REAL),
    row(
        "RotaryEmbedding",
        "input:T position_ids:M cos_cache:T sin_cache:T",
        "output:T",
        "interleaved:INT is_packed_batching:INT num_heads:INT rotary_embedding_dim:INT scale:FLOAT",
        T=_HALF,
        M=("int64",),
    ),
    row(
        "SimplifiedLayerNormalization",
        "X:T scale:V",
        "Y:V inv_std_var:U?",
        "axis:INT=-1 epsilon:FLOAT=1e-5 stash_type:INT=1",
        domain="",
        T=_REAL,
        U=("float", "double"),
        V=_REAL,
    ),
    row(
        "SkipLayerNormalization",
        "input:T skip:T gamma:T beta:T? bias:T?",
        "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
        "epsilon:FLOAT=1e-12",
        T=_HALF,
        U=("float",),
    ),
    row(
        "SkipSimplifiedLayerNormalization",
        "input:T skip:T gamma:T bias:T?",
        "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?",
        "epsilon:FLOAT=1e-12",
        T=_HALF,
        U=("float",),
    ),
    row("TransposeMatMul", "A:T B:T", "Y:T", "alpha:FLOAT=1 transA:INT=0 transB:INT=0", T=_REAL),
)

EARLIER = (
    row(
        "LayerNormalization",
        "X:T Scale:V B:V?",
        "Y:V Mean:U? InvStdDev:U?",
        "axis:INT=-1 epsilon:FLOAT=1e-5 stash_type:INT=1",
        domain="",
        T=_REAL,
        U=("float", "double"),
        V=_REAL,
    ),
)
"""Operators of ONNX that ONNX Runtime writes to files of operator sets before they were in it."""
