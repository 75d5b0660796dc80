"""Kernels of the fused Attention against each other and against what it stands for."""

import numpy as np
import pytest

from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.types import tensor_type_of
from foldline.kernels.attention_tiles import AttentionCase
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes, find_kernel, run_once
from foldline.stages.rewrite.replacement import import_domain
from tests.stages.check import parse, values

HEADS_FIRST = (0, 2, 1, 3)
STORED = {f"{name}_perm": HEADS_FIRST for name in ("query", "key", "value", "output")}


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(b=2, h=4, s=5, t=7, d=8, e=6, kv=None, dtype=np.float32):
    kv = h if kv is None else kv
    return (
        normal(b, h, s, d, dtype=dtype),
        normal(b, kv, t, d, seed=1, dtype=dtype),
        normal(b, kv, t, e, seed=2, dtype=dtype),
    )


def reference(*arrays, **attributes):
    entry = find_kernel("foldline", "Attention", 1, ["reference"])
    with np.errstate(all="ignore"):
        return entry.function(*arrays, **attributes)


def fast(*arrays, constant=(), out=None, **attributes):
    entry = find_kernel("foldline", "Attention", 1, ["fast"])
    given = [
        None if x is None else Operand(x.shape, x.dtype, x if i in constant else None)
        for i, x in enumerate(arrays)
    ]
    keywords = {} if out is None else {"out": out}
    with np.errstate(all="ignore"):
        return run_once(entry.function(*given, **attributes), arrays, **keywords)


def close(found, wanted, eps=2e-5):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=eps, atol=eps
    )


def test_the_reference_is_softmax_of_products():
    q, k, v = operands(dtype=np.float64)
    scores = 0.25 * (q @ k.swapaxes(-1, -2))
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(reference(q, k, v, scale=0.25), shares @ v, rtol=1e-12)


MASKS = {
    "none": None,
    "s t": normal(5, 7),
    "b 1 1 t": normal(2, 1, 1, 7),
    "b h s t": normal(2, 4, 5, 7),
    "t": normal(7),
    "one": np.float32(3).reshape(()),
    "boolean": normal(2, 1, 5, 7) > 0,
    "boolean, one key axis": normal(5, 1) > -1,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("guarded", [0, 1])
@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("is_constant", [False, True])
def test_masks(mask, guarded, keeps, is_constant):
    attributes = {"mask_keeps": keeps, "guarded": guarded, "scale": 0.3}
    arrays = (*operands(), MASKS[mask])
    wanted = reference(*arrays, **attributes)
    close(fast(*arrays, constant=(3,) if is_constant else (), **attributes), wanted)


@pytest.mark.parametrize("value", [-np.inf, -1e9, -3.4e38, 0.5])
def test_what_stands_for_a_hidden_score(value):
    arrays = (*operands(), MASKS["boolean"])
    close(fast(*arrays, mask_value=value), reference(*arrays, mask_value=value))


def test_a_constant_mask_gives_the_bits_of_one_of_the_run():
    for name in ("b h s t", "boolean"):
        arrays = (*operands(), MASKS[name])
        np.testing.assert_array_equal(fast(*arrays, constant=(3,)), fast(*arrays))


@pytest.mark.parametrize("guarded", [0, 1])
def test_nan_and_infinity_stay_in_their_rows(guarded):
    q, k, v = operands()
    q[0, 0, 0, 0], q[0, 1, 1, 1], q[1, 0, 2, 2] = np.nan, np.inf, -np.inf
    found, wanted = (f(q, k, v, guarded=guarded) for f in (fast, reference))
    close(found, wanted)
    assert np.isnan(wanted[0, 0, 0]).all() != bool(guarded)
    assert np.isfinite(wanted[0, 0, 1:]).all()


def test_infinite_values_reach_a_row_that_shares_nothing():
    q, k, v = operands()
    v[0, 0, 3, 2] = np.inf
    mask = np.zeros((5, 7), np.float32)
    mask[2] = -np.inf
    found, wanted = (f(q, k, v, mask, guarded=1) for f in (fast, reference))
    close(found, wanted)
    assert np.isnan(wanted[0, 0, 2, 2])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(dtype):
    arrays = (*operands(dtype=dtype), MASKS["s t"].astype(dtype))
    close(
        fast(*arrays, scale=0.3),
        reference(*arrays, scale=0.3),
        2e-2 if dtype == np.float16 else 1e-12,
    )


def test_narrow_floats_are_rounded_once():
    arrays = operands(dtype=np.float16)
    wide = fast(*(x.astype(np.float32) for x in arrays), scale=0.3)
    np.testing.assert_array_equal(fast(*arrays, scale=0.3), wide.astype(np.float16))


SHAPES = [(1, 1, 1, 1, 1, 1), (1, 3, 33, 1, 7, 1), (3, 2, 1, 33, 64, 5), (70, 3, 49, 49, 4, 4)]
SHAPES += [(1, 2, 700, 900, 5, 3), (2, 8, 300, 200, 8, 8)]


@pytest.mark.parametrize("shape", SHAPES)
def test_stored_orders_give_the_same_bits(shape):
    arrays = operands(*shape)
    plain = fast(*arrays, scale=0.3)
    close(plain, reference(*arrays, scale=0.3))
    stored = [x.transpose(HEADS_FIRST).copy() for x in arrays]
    found = fast(*stored, scale=0.3, **STORED)
    close(found, plain.transpose(HEADS_FIRST))


@pytest.mark.parametrize("kv", [1, 2, 4, 8])
@pytest.mark.parametrize("mask", ["none", "b 1 s t", "b h s t", "boolean"])
def test_heads_that_share_keys(kv, mask):
    arrays = operands(h=8, kv=kv)
    masks = {"b 1 s t": normal(2, 1, 5, 7), "b h s t": normal(2, 8, 5, 7), "none": None}
    given = (*arrays, masks.get(mask, MASKS["boolean"]))
    attributes = {"groups": 8 // kv, "kv_heads": kv, "scale": 0.3}
    close(fast(*given, **attributes), reference(*given, **attributes))


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 4), (7, 4), (7, 3)),
        ((3, 5, 4), (3, 7, 4), (3, 7, 3)),
        ((3, 5, 4), (1, 7, 4), (3, 7, 3)),
        ((2, 3, 5, 4), (1, 3, 7, 4), (2, 1, 7, 3)),
        ((2, 2, 3, 5, 4), (2, 1, 3, 7, 4), (1, 2, 3, 7, 3)),
        ((0, 3, 5, 4), (0, 3, 7, 4), (0, 3, 7, 3)),
        ((2, 3, 0, 4), (2, 3, 7, 4), (2, 3, 7, 3)),
        ((2, 3, 5, 0), (2, 3, 7, 0), (2, 3, 7, 3)),
        ((2, 3, 5, 4), (2, 3, 0, 4), (2, 3, 0, 3)),
    ],
)
def test_axes_before_those_of_matrices(shapes):
    arrays = [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    close(fast(*arrays), reference(*arrays))


def test_a_mask_that_enlarges_the_scores():
    arrays = (*operands(b=1, s=1), normal(3, 1, 5, 7))
    found = fast(*arrays)
    close(found, reference(*arrays))
    assert found.shape == (3, 4, 5, 6)


def test_out_is_written_and_inputs_are_not():
    arrays = [x.transpose(HEADS_FIRST).copy() for x in operands()]
    for array in arrays:
        array.setflags(write=False)
    out = np.full((2, 5, 4, 6), np.nan, np.float32)
    assert fast(*arrays, out=out, **STORED) is out
    np.testing.assert_array_equal(out, fast(*arrays, **STORED))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_change_no_bit(threads):
    arrays = operands(3, 4, 300, 500, 8, 8)
    single = fast(*arrays)
    with use_threads(threads):
        np.testing.assert_array_equal(fast(*arrays), single)


@pytest.mark.parametrize(
    "shape", [(2, 8, 700, 900), (90, 4, 10, 12), (1, 2, 1, 1), (2, 6, 9, 9000)]
)
def test_tiles_cover_every_query_of_every_head_once(shape):
    b, h, s, t = shape
    case = AttentionCase.of((b, h, s, 4), (b, h // 2, t, 4), (b, h // 2, t, 4), (), 2, 4)
    assert case is not None
    seen = np.zeros((b, h // 2, 2, s), np.int64)
    for tile in case.tiles():
        seen[tile.own] += 1
    assert (seen == 1).all()


FORMS = {
    "plain": ({"scale": 0.5}, None),
    "added": ({"scale": 0.5}, MASKS["s t"]),
    "guarded": ({"guarded": 1}, MASKS["b 1 1 t"]),
    "hidden": ({"mask_value": -1e4}, MASKS["s t"] > 0),
    "kept": ({"mask_keeps": 0}, MASKS["s t"] > 0),
    "shared": ({"groups": 2, "kv_heads": 2, "scale": 0.5}, MASKS["s t"]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [13, 21, 23])
def test_it_is_what_it_stands_for(form, opset):
    attributes, mask = FORMS[form]
    arrays = (*operands(kv=attributes.get("kv_heads", 4)), mask)
    (wanted,) = values(fused_module(arrays, attributes, opset), feed_of(arrays))
    close(fast(*arrays, **attributes), wanted)
    close(reference(*arrays, **attributes), wanted)


def feed_of(arrays):
    return {name: x for name, x in zip("qkvm", arrays, strict=True) if x is not None}


def fused_module(arrays, attributes, opset):
    """A module of one fused Attention."""
    feed = feed_of(arrays)
    inputs = ", ".join(f"%{name}: {tensor_type_of(x)}" for name, x in feed.items())
    kinds = {int: "i64", float: "f32"}
    given = ", ".join(f"{n} = {v} : {kinds[type(v)]}" for n, v in attributes.items())
    names = ", ".join(f"%{name}" for name in feed)
    text = f"%y = fused.Attention({names}) {{{given}}} : tensor<2x4x5x6xf32>\nreturn(%y)"
    module = parse(text, inputs, opset=opset)
    import_domain(next(iter(main_graph(module).body.block.ops)), "foldline")
    return module


@pytest.mark.parametrize("mask", [None, (1, 1, 1, 7), (2, 4, 5, 7), "boolean"])
@pytest.mark.parametrize("threads", [1, 2])
def test_bound_steps_give_the_same_bits(mask, threads, monkeypatch):
    monkeypatch.setattr("foldline.kernels.attention_tiles.TILE_BYTES", 300)
    arrays = list(operands())
    if mask == "boolean":
        arrays.append(normal(5, 7) > 0)
    elif mask is not None:
        arrays.append(normal(*mask, seed=3))
    entry = find_kernel("foldline", "Attention", 1, ["fast"])
    step = entry.function(*(Operand(x.shape, x.dtype) for x in arrays), scale=0.3, guarded=1)
    # Masks that are turned or negated first are so in every run.
    assert (step.bind is None) == (mask in ((2, 4, 5, 7), "boolean"))
    if step.bind is None:
        return
    scratch = aligned_bytes(step.scratch_bytes)
    out = np.empty((2, 4, 5, 6), np.float32)
    bound = step.bind(*arrays, out=out, scratch=scratch)
    for _ in range(2):
        scratch.fill(255)
        with use_threads(threads):
            bound()
        np.testing.assert_array_equal(out, step.run(*arrays, scratch=scratch))
        # What is bound are places, not what they held.
        for array in arrays:
            array += 0.25
