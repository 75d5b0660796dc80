"""When a node is ready, and what it costs to find out."""

from __future__ import annotations

from collections import Counter

import pytest
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import OpOperands

from foldline.stages.driver.block_walk import BlockWalk
from tests.stages.driver.recording import Recorder, erase, resume, suspend, traverse

WAITING = """g (bool c, float[4] x) => (float[4] y) {
    a = Relu(x) b = Abs(a) d = Neg(b) e = Exp(d)
    y = If(c) < then_branch = t () => (float[4] u) { s = Abs(THEN) u = Abs(s) },
                else_branch = e () => (float[4] v) { v = Exp(x) }>
}"""


def test_a_node_waits_for_what_its_bodies_read() -> None:
    visits, _ = traverse(WAITING.replace("THEN", "d"))
    assert visits == ["a", "b", "d", "e", "y", "s", "u", "v", "y"]


def test_a_node_waits_no_more_for_what_its_bodies_read_no_more() -> None:
    text = WAITING.replace("THEN", "a").replace("{ v =", "{ unread = Abs(e) v =")
    visits, _ = traverse(text, a=erase("unread"))
    assert visits == ["a", "y", "s", "u", "v", "y", "b", "d", "e"]


def test_a_node_waits_for_what_its_bodies_come_to_read() -> None:
    def act(recorder: Recorder, _: Operation) -> None:
        new = recorder.by_name["s"].clone()
        new.operands = recorder.by_name["e"].results
        recorder.rewriter.insert_before(new, recorder.by_name["u"])

    visits, _ = traverse(WAITING.replace("THEN", "b"), a=act)
    assert visits[:5] == ["a", "b", "d", "e", "y"]


def test_a_node_waits_for_an_input_that_is_suspended_after_it_was_seen() -> None:
    text = """g (float[4] x) => (float[4] y) {
        a = Relu(x) b = Neg(x) c = Abs(b) y = Sum(a, b, c) }"""

    def prepare(recorder: Recorder) -> None:
        recorder.leaks = [lambda r: r.requests.resume(r.by_name["a"])]

    visits, _ = traverse(text, prepare, b=suspend("a"))
    assert visits == ["a", "b", "c", "a", "y"]


WIDTH = 300
NAMES = [f"v{i + 1}" for i in range(WIDTH)]
CHAIN = "".join(f"{name} = Neg(v{i})\n" for i, name in enumerate(NAMES))
WIDE = f"Sum({', '.join(NAMES)})"


@pytest.mark.parametrize(
    "last",
    [
        f"y = {WIDE}",
        f"held = Abs(v0) y = {WIDE}",
        f"""y = If(c) < then_branch = t () => (float[4] u) {{ u = {WIDE} }},
                        else_branch = e () => (float[4] w) {{ w = Exp(v0) }}>""",
    ],
    ids=["inputs", "inputs_while_another_node_is_suspended", "inputs_of_a_body"],
)
def test_a_wide_node_costs_no_more_than_its_inputs(
    monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Each input of a wide node is asked for, and asked whether it was seen, a few times."""
    is_awaited, getitem, counted = BlockWalk.is_awaited, OpOperands.__getitem__, Counter[str]()

    def asked(walk: BlockWalk, producer: Operation | Block) -> bool:
        counted["asked"] += 1
        return is_awaited(walk, producer)

    def given(operands: OpOperands, index: int | slice) -> object:
        found = getitem(operands, index)
        counted["given"] += 1 if isinstance(found, SSAValue) else len(found)
        return found

    monkeypatch.setattr(BlockWalk, "is_awaited", asked)
    monkeypatch.setattr(OpOperands, "__getitem__", given)
    text = f"g (bool c, float[4] v0) => (float[4] y) {{ {CHAIN} {last} }}"
    on = {"v1": suspend("held"), NAMES[-1]: resume("held")} if "held" in last else {}
    visits, _ = traverse(text, lambda recorder: recorder.on.update(on))
    assert "y" in visits[WIDTH:]
    assert max(counted.values()) < 10 * WIDTH
