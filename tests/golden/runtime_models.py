"""Models of operators of ONNX Runtime and of machine learning, and of random ones."""

from __future__ import annotations

import numpy as np

from tests.golden.building import Golden, made, numbers


def attentions() -> Golden:
    return made(
        17,
        """g (float[2, 4, 5] x, float[2, 4, 6] q, float[2, 3, 6] k)
            => (float[2, 4, 6] y, float[2, 4, 6] z, float[2, 4, 6] c) {
            w = Add (a, b)
            y = com.microsoft.Attention <num_heads = 2, unidirectional = 1> (x, w, shift, seen)
            z = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, k)
            codes, s, p = DynamicQuantizeLinear (x)
            c = com.microsoft.QAttention <num_heads = 2>
                (codes, eight, shift, s, ws, , p, wz)
        }""",
        {"x": numbers(72, 2, 4, 5), "q": numbers(73, 2, 4, 6), "k": numbers(74, 2, 3, 6)},
        a=numbers(75, 5, 18),
        b=numbers(76, 5, 18),
        shift=numbers(77, 18),
        seen=np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32),
        eight=(numbers(78, 5, 18) * 127).astype(np.int8),
        ws=np.float32(0.01),
        wz=np.int8(3),
    )


def grouped() -> Golden:
    return made(
        17,
        """g (float[1, 3, 32] q, float[1, 3, 16] k, float[1, 2, 4, 8] past, float[2, 40] m)
            => (float[1, 3, 32] y, float[1, A, B, C] keys, float[1, D, E, F] values,
                float[1, 3, 32] r, float[2, 6] n) {
            s = Sin (angles)
            c = Cos (angles)
            y, keys, values = com.microsoft.GroupQueryAttention
                <num_heads = 4, kv_num_heads = 2, do_rotary = 1, softcap = 3.0>
                (q, k, k, past, past, last, total, c, s)
            r = com.microsoft.RotaryEmbedding <interleaved = 1> (q, first, c, s)
            n = com.microsoft.MatMulNBits <K = 40, N = 6, block_size = 16> (m, codes, scales)
        }""",
        {
            "q": numbers(79, 1, 3, 32),
            "k": numbers(80, 1, 3, 16),
            "past": numbers(81, 1, 2, 4, 8),
            "m": numbers(82, 2, 40),
        },
        angles=numbers(83, 9, 4) * np.float32(20),
        last=np.array([6], np.int32),
        total=np.array(7, np.int32),
        first=np.array([2], np.int64),
        codes=(numbers(84, 6, 3, 8) * 127 + 128).astype(np.uint8),
        scales=numbers(85, 18),
    )


def embeddings() -> Golden:
    def eight(seed: int, *shape: int) -> np.ndarray:
        return (numbers(seed, *shape) * 127).astype(np.int8)

    scales = {f"s{i}": np.float32(0.01 + 0.005 * i) for i in range(5)}
    zeros = {f"z{i}": np.int8(3 * i) for i in range(5)}
    return made(
        17,
        """g (int32[2, 3] ids, int32[2, 3] kinds)
            => (float[2, 3, 8] y, int32[2] n, float[2, 3, 8] z, int32[2] o) {
            h = Mul (gamma, gamma)
            y, n = com.microsoft.EmbedLayerNormalization
                (ids, kinds, words, places, types, h, beta, mask)
            z, o = com.microsoft.QEmbedLayerNormalization
                (ids, kinds, w, p, t, g8, b8, mask, s0, s1, s2, s3, s4, z0, z1, z2, z3, z4)
        }""",
        {
            "ids": np.array([[3, 0, 9], [1, 1, 4]], np.int32),
            "kinds": np.array([[0, 1, 1], [1, 0, 0]], np.int32),
        },
        words=numbers(86, 10, 8),
        places=numbers(87, 4, 8),
        types=numbers(88, 2, 8),
        gamma=numbers(89, 8),
        beta=numbers(90, 8),
        mask=np.array([[1, 1, 0], [1, 1, 1]], np.int32),
        w=eight(91, 10, 8),
        p=eight(92, 4, 8),
        t=eight(93, 2, 8),
        g8=eight(94, 8),
        b8=eight(95, 8),
        **scales,
        **zeros,
    )


def _listed(values: np.ndarray) -> str:
    return ", ".join(repr(value) for value in values.reshape(-1).tolist())


def machines() -> Golden:
    vectors, weights = _listed(numbers(96, 6, 3)), _listed(numbers(97, 12))
    common = f"support_vectors = [{vectors}], kernel_params = [0.3, 0.1, 2.5]"
    kinds = ("LINEAR", "POLY", "RBF", "SIGMOID")
    lines = [
        f"""l{i}, p{i} = ai.onnx.ml.SVMClassifier <{common}, kernel_type = "{kind}",
            coefficients = [{weights}], rho = [0.1, -0.2, 0.3], classlabels_ints = [5, 6, 7],
            vectors_per_class = [2, 3, 1], prob_a = [-1.5, -0.7, -2.0], prob_b = [0.1, 0.0, -0.3],
            post_transform = "SOFTMAX"> (moved)
        y{i} = ai.onnx.ml.SVMRegressor <{common}, kernel_type = "{kind}", n_supports = 6,
            coefficients = [{_listed(numbers(98, 6))}], rho = [0.25]> (moved)"""
        for i, kind in enumerate(kinds)
    ]
    results = [f"int64[9] l{i}, float[9, 3] p{i}, float[9, 1] y{i}" for i in range(len(kinds))]
    return made(
        17,
        f"""g (float[9, 3] x) => ({", ".join(results)}) {{
            shift = Exp (c)
            moved = Add (x, shift)
            {" ".join(lines)}
        }}""",
        {"x": numbers(99, 9, 3)},
        c=numbers(100, 3),
    )


def drawn() -> Golden:
    return made(
        17,
        """g (float[3, 5] x) => (float[4, 7] n, double[3, 5] d, float16[3, 5] h, int32[3, 20] c) {
            n = RandomNormal <shape = [4, 7], mean = 1.5, scale = 0.5, seed = 3.0> ()
            d = RandomNormalLike <dtype = 11, seed = -0.25> (x)
            h = RandomNormalLike <dtype = 10, seed = 8.0> (x)
            e = Exp (one)
            logits = Mul (x, e)
            c = Multinomial <sample_size = 20, seed = 0.5> (logits)
        }""",
        {"x": numbers(101, 3, 5) * np.float32(3)},
        one=np.float32(1.1),
    )
