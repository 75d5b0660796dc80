from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Block, Operation, Region
from xdsl.parser import Parser

from foldline.dialects.fold import (
    FROM_FOLDING,
    INSERTED,
    KEEP,
    NO_NEED,
    Fact,
    FullyKnown,
    KnownAttr,
    PartlyKnown,
    clear_no_need,
    drop_facts,
    folded_nodes,
    get_fact,
    is_inserted,
    is_kept,
    keep,
    mark_inserted,
    no_need_reason,
    set_fact,
    set_from_folding,
    set_no_need,
)
from foldline.dialects.onnx.control import LoopOp
from foldline.dialects.onnx.math import ReluOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import UNKNOWN
from tests.dialects.ir import TEXTS, attribute_text, context, graph, parse, reparsed, text_of

ELEMENTS = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=4)
FACTS = st.one_of(
    st.none(),
    st.builds(
        lambda elements, source: PartlyKnown("int64", (len(elements),), tuple(elements), source),
        ELEMENTS,
        TEXTS,
    ),
    st.builds(
        lambda numbers, source: FullyKnown(TensorAttr.of(np.array(numbers, np.float32)), source),
        st.lists(st.floats(width=32), max_size=3),
        TEXTS,
    ),
)
PARTLY = PartlyKnown("int64", (2,), (1, None), "dimension-compute")
FULLY = FullyKnown(TensorAttr.of(np.array([3])), "constant-folding")


@given(st.lists(FACTS, max_size=3))
def test_facts_survive_print_and_parse(facts: list[Fact | None]) -> None:
    attribute = KnownAttr(tuple(facts))
    assert reparsed(attribute) == attribute


def test_facts_read_well() -> None:
    assert attribute_text(KnownAttr((None, PARTLY, FULLY))) == (
        '#fold.known<_, ["int64", [2], [1, _], "dimension-compute"], '
        '[#onnx.tensor<"int64", [1], "0300000000000000">, "constant-folding"]>'
    )


def two_results() -> Operation:
    return ReluOp.create(result_types=[UNKNOWN, UNKNOWN])


def test_facts_are_kept_for_each_result() -> None:
    op = two_results()
    first, second = op.results
    assert get_fact(first) is None
    set_fact(second, FULLY)
    assert get_fact(first) is None
    assert get_fact(second) == FULLY
    set_fact(first, PARTLY)
    assert (get_fact(first), get_fact(second)) == (PARTLY, FULLY)
    set_fact(second, None)
    assert (get_fact(first), get_fact(second)) == (PARTLY, None)


def test_nothing_known_leaves_no_attribute() -> None:
    op = two_results()
    set_fact(op.results[1], FULLY)
    set_fact(op.results[1], None)
    assert op.attributes == {}
    assert not drop_facts(op)


def test_facts_are_dropped_together_and_flags_stay() -> None:
    op = two_results()
    set_fact(op.results[0], FULLY)
    keep(op)
    assert drop_facts(op)
    assert list(op.attributes) == [KEEP]


def test_facts_of_block_arguments_stand_on_the_owner() -> None:
    module = graph("", "%x: tensor<2xi64>, %z: tensor<2xi64>", '"x", "z"')
    owner = main_graph(module)
    first, second = owner.body.block.args
    set_fact(second, PARTLY)
    assert get_fact(first) is None
    assert get_fact(second) == PARTLY
    assert "fold.known_arguments" in owner.attributes
    copy = parse(text_of(module))
    assert get_fact(main_graph(copy).body.block.args[1]) == PARTLY
    assert drop_facts(owner)
    assert get_fact(second) is None


def test_arguments_of_several_bodies_and_results_do_not_mix() -> None:
    bodies = [Block(arg_types=[UNKNOWN, UNKNOWN]), Block(arg_types=[UNKNOWN])]
    op = LoopOp.create(result_types=[UNKNOWN], regions=[])
    for body in bodies:
        op.add_region(Region(body))
    set_fact(op.results[0], FULLY)
    set_fact(bodies[1].args[0], PARTLY)
    assert get_fact(op.results[0]) == FULLY
    assert get_fact(bodies[0].args[0]) is None
    assert get_fact(bodies[1].args[0]) == PARTLY


def test_arguments_without_owner_have_no_place_for_facts() -> None:
    argument = Block(arg_types=[UNKNOWN]).args[0]
    assert get_fact(argument) is None
    with pytest.raises(ValueError, match="stands in no operation"):
        set_fact(argument, FULLY)


def test_flags() -> None:
    op = two_results()
    assert not is_kept(op)
    assert not is_inserted(op)
    assert no_need_reason(op) is None
    assert folded_nodes(op) is None
    keep(op)
    set_no_need(op, "feeds a Conv (größe)")
    set_from_folding(op, ["a", "b"])
    mark_inserted(op)
    back = Parser(context(), text_of(op)).parse_op()
    assert is_kept(back)
    assert is_inserted(back)
    assert no_need_reason(back) == "feeds a Conv (größe)"
    assert folded_nodes(back) == ("a", "b")
    clear_no_need(back)
    assert set(back.attributes) == {KEEP, FROM_FOLDING, INSERTED}
    assert NO_NEED in op.attributes
