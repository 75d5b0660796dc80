from __future__ import annotations

import onnx
import pytest
from onnx import parser
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from foldline.dialects.onnx.attributes import Interface, InterfaceAttr
from foldline.dialects.onnx.demands import spelling
from foldline.dialects.onnx.math import ReluOp
from foldline.dialects.onnx.structure import ReturnOp, main_graph
from foldline.dialects.onnx.types import UNKNOWN, MapType, OptionalType, SequenceType
from foldline.dialects.onnx.verifier import verify_model
from foldline.importer.model import import_model
from foldline.support.errors import InvalidModel
from tests.dialects.ir import graph, parse, text_of

F = "tensor<2xf32>"
D = "tensor<2xf64>"
X = f"%x: {F}"


def faults(module: ModuleOp) -> str:
    with pytest.raises(InvalidModel) as caught:
        verify_model(module)
    return str(caught.value)


def one(body: str, arguments: str = X, inputs: str = '"x"', opsets: str = '"" : 17') -> str:
    """The message on a graph of one fault."""
    message = faults(graph(body, arguments, inputs, opsets=opsets))
    assert "\n" not in message
    return message


def body(returned: str, outputs: str, ops: str = "", arguments: str = "", inputs: str = "") -> str:
    """A body; `outputs` and `inputs` are names."""
    head = f"^bb0({arguments}):\n" if arguments else ""
    ins, outs = (", ".join(f'"{name}"' for name in names.split()) for names in (inputs, outputs))
    return (
        f"{{\n{head}{ops}\nonnx.return({returned}) "
        f'{{interface = #onnx.interface<"b", [{ins}], [{outs}], []>}}\n}}'
    )


NAMED = '{onnx.names = #onnx.names<"n" : "y">}'


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (
            f"%y = onnx.Add(%x) {NAMED} : {F}",
            "graph: onnx.Add (node 'n'): has 1 inputs, expected 2",
        ),
        (
            f"%y, %z = onnx.Relu(%x) {NAMED} : {F}, {F}",
            "graph: onnx.Relu (node 'n'): has 2 outputs, expected 1",
        ),
        (
            f"%y = onnx.Conv(%x) {NAMED} : {F}",
            "graph: onnx.Conv (node 'n'): has 1 inputs, expected 2 to 3",
        ),
        (
            f"%y = onnx.Concat() {{axis = 0 : i64}} : {F}",
            "graph: onnx.Concat: has 0 inputs, expected 1 or more",
        ),
        (
            f"%n = onnx.none() : !onnx.absent\n%y = onnx.Add(%n, %x) {NAMED} : {F}",
            "graph: onnx.Add (node 'n'): input 0 'A' is required, but absent",
        ),
        (
            f"%y = onnx.Relu(%x) {NAMED} : !onnx.absent",
            "graph: onnx.Relu (node 'n'): output 0 'Y' is required, but absent",
        ),
        (
            f"%y = onnx.Squeeze(%x) {{axes = array<i64: 0>}} : {F}",
            "graph: onnx.Squeeze: has no attribute 'axes' in version 13",
        ),
        (
            f"%y = onnx.Relu(%x) {{alpha = 1 : i64}} : {F}",
            "graph: onnx.Relu: has no attribute 'alpha' in version 14",
        ),
        (
            f"%y = onnx.Concat(%x) : {F}",
            "graph: onnx.Concat: attribute 'axis' is required, but missing",
        ),
        (
            f"%y = onnx.Concat(%x) {{axis = 0.0 : f32}} : {F}",
            "graph: onnx.Concat: attribute 'axis' is FLOAT, expected INT",
        ),
        (
            f"%y = onnx.Transpose(%x) {{perm = array<f32: 0.0>}} : {F}",
            "graph: onnx.Transpose: attribute 'perm' is FLOATS, expected INTS",
        ),
        (
            f'%y = onnx.Transpose(%x) {{perm = #onnx.reference<"p", 7>}} : {F}',
            "graph: onnx.Transpose: attribute 'perm' refers to 'p' outside of a function",
        ),
        (
            f"%y = onnx.If(%c) : {F}",
            "graph: onnx.If: attribute 'then_branch' is required, but missing",
        ),
        (
            f"%y = onnx.Gelu(%x) : {F}",
            "graph: onnx.Gelu: Gelu is not in version 17 of operator set 'ai.onnx', "
            "it came with 20: import that or a later one",
        ),
        (
            f"%y = onnx.Upsample(%x, %x) : {F}",
            "graph: onnx.Upsample: Upsample is deprecated in version 17 of operator set 'ai.onnx', "
            "since 10: replace it, or import an earlier version",
        ),
        (
            f"%y = onnx.ml.Scaler(%x) : {F}",
            "graph: onnx.ml.Scaler: operator set 'ai.onnx.ml' is not imported",
        ),
        (
            "%y = onnx.Not(%x) : !onnx.unknown",
            "graph: onnx.Not: input 0 'X' is tensor(float), expected one of tensor(bool)",
        ),
        (
            "%y = onnx.Add(%x, %d) : !onnx.unknown",
            "graph: onnx.Add: input 1 'B' is tensor(double), but input 0 is tensor(float); both "
            "are of type T",
        ),
        (
            "%y = onnx.Concat(%x, %x, %d) {axis = 0 : i64} : !onnx.unknown",
            "graph: onnx.Concat: input 2 'inputs' is tensor(double), but input 0 is "
            "tensor(float); both are of type T",
        ),
        (
            '%y = onnx.custom(%x) {domain = #onnx.text<"my">, op_type = #onnx.text<"Op">, '
            "given = {}} : !onnx.unknown",
            "graph: onnx.custom Op: operator set 'my' is not imported: add it to opset_import",
        ),
        (
            '%y = onnx.custom(%x) {domain = #onnx.text<"">, op_type = #onnx.text<"Gelu">, '
            "given = {}} : !onnx.unknown",
            "graph: onnx.custom Gelu: Gelu is not in version 17 of operator set 'ai.onnx', "
            "it came with 20: import that or a later one",
        ),
        (
            '%y = onnx.call(%x) {callee = @"l::f", given = {}} : !onnx.unknown',
            "graph: onnx.call: calls 'l::f', which the module does not define",
        ),
        (
            f'%w = onnx.initializer() {{value = #onnx.tensor<"int64", [1], "0100000000000000">}}'
            f" : {F}",
            "graph: onnx.initializer: is tensor(float), but holds tensor(int64)",
        ),
        (
            f"%y = onnx.Relu(%x) : {F}\n"
            'onnx.default(%y) {value = #onnx.tensor<"float", [1], "0000803f">}',
            "graph: onnx.default: gives a default to what is no input",
        ),
        (f"%y = onnx.none() : {F}", f"graph: onnx.none: has type {F}"),
        (
            f'%y = onnx.Relu(%x) {{onnx.names = #onnx.names<_ : "a", "b">}} : {F}',
            "graph: onnx.Relu (output 'a'): has 2 names for 1 results",
        ),
        (
            f'%y = onnx.Relu(%x) {{onnx.names = #onnx.names<_ : "x">}} : {F}',
            "graph: onnx.Relu (output 'x'): 'x' is defined twice",
        ),
    ],
)
def test_a_fault_of_an_operation(ops: str, expected: str) -> None:
    arguments = f"{X}, %d: {D}, %c: tensor<i1>"
    message = faults(graph(ops, arguments, '"x", "d", "c"'))
    assert expected in message
    if "onnx.If" not in expected:
        assert message == expected


@pytest.mark.parametrize(
    ("arguments", "inputs", "outputs", "results", "expected"),
    [
        (X, "", "", "", "graph: declares 0 inputs for 1 block arguments"),
        (f"{X}, %z: {F}", '"x", "x"', "", "", "graph: two inputs are named 'x'"),
        (X, '""', "", "", "graph: input 0 has no name"),
        (X, '"x"', '"y"', "", "graph: declares 1 outputs, but returns 0 values"),
        (X, '"x"', '""', "%x", "graph: an output has no name"),
        ("%x: !onnx.absent", '"x"', '"y"', "%x", "graph: output 'y' is an absent value"),
        (f"{X}, %z: {F}", '"x", "z"', '"y", "y"', "%x, %z", "graph: two outputs are named 'y'"),
    ],
)
def test_a_fault_of_an_interface(
    arguments: str, inputs: str, outputs: str, results: str, expected: str
) -> None:
    message = faults(graph("", arguments, inputs, outputs, results))
    assert expected in message


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (
            f"%y = onnx.If(%c) ({body('%x', 'a')}, {body('', '')}) : {F}",
            "graph: body 'then_branch' of onnx.If: has 0 outputs, expected 1",
        ),
        (
            f"%y = onnx.If(%c) ({body('%x', 'a')}, "
            f"{body('%x', 'b', arguments='%q: tensor<2xf32>', inputs='q')}) : {F}",
            "graph: body 'then_branch' of onnx.If: has 1 inputs, expected 0",
        ),
        (
            "%n = onnx.none() : !onnx.absent\n"
            "%y = onnx.Loop(%n, %c, %x) ("
            + body("%c, %x", "c1 x1", arguments="%i: tensor<i64>", inputs="i")
            + f") : {F}",
            "graph: body 'body' of onnx.Loop: has 1 inputs, expected 3",
        ),
        (
            "%n = onnx.none() : !onnx.absent\n"
            "%y = onnx.Loop(%n, %c, %x) ("
            + body(
                "%x",
                "x1",
                arguments=f"%i: tensor<i64>, %k: tensor<i1>, %v: {F}",
                inputs="i k v",
            )
            + f") : {F}",
            "graph: body 'body' of onnx.Loop: has 1 outputs, expected 2",
        ),
        (
            "%y = onnx.Scan(%x) {num_scan_inputs = 1 : i64} ("
            + body("%s, %s", "a b", arguments=f"%s: {F}", inputs="s")
            + f") : {F}",
            "graph: body 'body' of onnx.Scan: has 2 outputs, expected 1",
        ),
    ],
)
def test_a_fault_of_a_body(ops: str, expected: str) -> None:
    ops = ops.replace(
        "onnx.If(%c) (", 'onnx.If(%c) {graph_names = #onnx.texts<"else_branch", "then_branch">} ('
    )
    assert faults(graph(ops, f"{X}, %c: tensor<i1>", '"x", "c"')) == expected


def relu_chain() -> ModuleOp:
    return graph(f"%y = onnx.Relu(%x) : {F}\n%z = onnx.Exp(%y) : {F}", X, '"x"', '"z"', "%z")


def test_use_before_definition() -> None:
    module = relu_chain()
    block = main_graph(module).body.block
    relu, exp, _ = block.ops
    exp.detach()
    block.insert_op_before(exp, relu)
    message = faults(module)
    assert message == "graph: onnx.Exp: reads input 0 from onnx.Relu before it is defined"


def test_values_of_a_sibling_body_are_out_of_sight() -> None:
    names = '{graph_names = #onnx.texts<"else_branch", "then_branch">}'
    relu = f"%q = onnx.Relu(%x) : {F}"
    exp = f"%r = onnx.Exp(%x) : {F}"
    module = graph(
        f"%y = onnx.If(%c) {names} ({body('%q', 'a', relu)}, {body('%r', 'b', exp)}) : {F}",
        f"{X}, %c: tensor<i1>",
        '"x", "c"',
    )
    verify_model(module)
    conditional = main_graph(module).body.block.first_op
    assert conditional is not None
    relu_op = conditional.regions[0].block.first_op
    exp_op = conditional.regions[1].block.first_op
    assert relu_op is not None
    assert exp_op is not None
    exp_op.operands = [relu_op.results[0]]
    assert faults(module) == (
        "graph: body 'then_branch' of onnx.If: onnx.Exp: reads input 0 from onnx.Relu, which is "
        "out of its sight"
    )


FUNCTION = """onnx.function() {{sym_name = "l::{name}", domain = #onnx.text<"l">,
  op_type = #onnx.text<"{name}">, opsets = #onnx.opsets<"" : {opset}>,
  parameters = #onnx.texts<"alpha">, defaults = {{}}}} ({{
  ^bb0(%u: tensor<2xf32>):
    {body}
    onnx.return(%v) {{interface = #onnx.interface<_, ["u"], ["v"], []>}}
  }})
"""


def function(body: str, name: str = "f", opset: int = 17) -> str:
    return FUNCTION.format(name=name, body=body, opset=opset)


CALL = '%y = onnx.call(%x) {callee = @"l::f", given = {}} : !onnx.unknown'


def test_values_of_another_graph_are_out_of_sight() -> None:
    module = graph(CALL, X, '"x"', functions=function(f"%v = onnx.Relu(%u) : {F}"))
    verify_model(module)
    inner = next(op for op in module.walk() if isinstance(op, ReluOp))
    inner.operands = [main_graph(module).body.block.args[0]]
    assert faults(module) == (
        "function 'l::f': onnx.Relu: reads input 0 from a block, which is out of its sight"
    )


@pytest.mark.parametrize(
    ("inner", "call", "expected"),
    [
        (
            f'%v = onnx.LeakyRelu(%u) {{alpha = #onnx.reference<"beta", 1>}} : {F}',
            CALL,
            "function 'l::f': onnx.LeakyRelu: attribute 'alpha' refers to 'beta', which the "
            "function does not declare",
        ),
        (
            f'%v = onnx.LeakyRelu(%u) {{alpha = #onnx.reference<"alpha", 2>}} : {F}',
            CALL,
            "function 'l::f': onnx.LeakyRelu: attribute 'alpha' is INT, expected FLOAT",
        ),
        (
            f"%v = onnx.Relu(%u) : {F}",
            '%y = onnx.call(%x, %x) {callee = @"l::f", given = {}} : !onnx.unknown',
            "graph: onnx.call: has 2 inputs, 'l::f' has 1",
        ),
        (
            f"%v = onnx.Relu(%u) : {F}",
            '%y = onnx.call(%x) {callee = @"l::f", given = {beta = 1 : i64}} : !onnx.unknown',
            "graph: onnx.call: 'l::f' has no attribute 'beta'; valid: alpha",
        ),
        (
            f'%v = onnx.LeakyRelu(%u) {{alpha = #onnx.reference<"alpha", 1>}} : {F}',
            '%y = onnx.call(%x) {callee = @"l::f", given = {alpha = 1 : i64}} : !onnx.unknown',
            "graph: onnx.call: attribute 'alpha' of 'l::f' is INT, expected FLOAT",
        ),
        (
            '%v = onnx.call(%u) {callee = @"l::f", given = {}} : !onnx.unknown',
            CALL,
            "module: functions call each other in a circle: l::f -> l::f",
        ),
        (
            f"%v = onnx.Gelu(%u) : {F}",
            CALL,
            "function 'l::f': onnx.Gelu: Gelu is not in version 17 of operator set 'ai.onnx', "
            "it came with 20: import that or a later one",
        ),
    ],
)
def test_a_fault_of_a_function(inner: str, call: str, expected: str) -> None:
    assert faults(graph(call, X, '"x"', functions=function(inner))) == expected


def test_functions_are_checked_against_their_own_imports() -> None:
    inner = f"%v = onnx.Gelu(%u) : {F}"
    verify_model(graph(CALL, X, '"x"', functions=function(inner, opset=20)))


def test_two_functions_of_one_symbol() -> None:
    twice = function(f"%v = onnx.Relu(%u) : {F}") * 2
    assert faults(graph(CALL, X, '"x"', functions=twice)) == (
        "module: two functions have the symbol 'l::f'"
    )


@pytest.mark.parametrize("opsets", ['"" : 999', '"" : 0', '"" : 17, "ai.onnx.ml" : 99'])
def test_unknown_operator_sets_are_refused(opsets: str) -> None:
    assert "imports version" in one("", opsets=opsets)


def test_versions_of_unknown_domains_are_free() -> None:
    verify_model(graph("", X, '"x"', opsets='"" : 17, "my.domain" : 999'))


def test_operators_that_nothing_defines_are_kept() -> None:
    verify_model(
        graph(
            '%y = onnx.custom(%x) {domain = #onnx.text<"">, op_type = #onnx.text<"ImageScaler">, '
            "given = {scale = 2.0 : f32}} : !onnx.unknown",
            X,
            '"x"',
        )
    )


def test_a_body_may_not_take_a_name_in_sight() -> None:
    names = '{graph_names = #onnx.texts<"else_branch", "then_branch">}'
    relu = f'%q = onnx.Relu(%x) {{onnx.names = #onnx.names<_ : "x">}} : {F}'
    same = f'%q = onnx.Relu(%x) {{onnx.names = #onnx.names<_ : "same">}} : {F}'
    arguments, inputs = f"{X}, %c: tensor<i1>", '"x", "c"'
    bad = graph(
        f"%y = onnx.If(%c) {names} ({body('%q', 'a', relu)}, {body('%x', 'b')}) : {F}",
        arguments,
        inputs,
    )
    assert faults(bad).endswith("(output 'x'): 'x' is already defined in graph")
    verify_model(bad, names=False)
    good = graph(
        f"%y = onnx.If(%c) {names} ({body('%q', 'a', same)}, "
        f"{body('%r', 'b', same.replace('%q', '%r'))}) : {F}\n"
        f'%z = onnx.Relu(%x) {{onnx.names = #onnx.names<_ : "same">}} : {F}',
        arguments,
        inputs,
    )
    verify_model(good)


def test_blocks_have_to_end_with_a_return() -> None:
    module = relu_chain()
    block = main_graph(module).body.block
    end = block.last_op
    assert end is not None
    end.detach()
    assert faults(module) == "graph: ends with onnx.Exp, not onnx.return"
    extra = ReturnOp.create(properties={"interface": InterfaceAttr(Interface())})
    exp = block.last_op
    assert exp is not None
    block.insert_op_before(extra, exp)
    block.add_op(end)
    assert faults(module) == "graph: onnx.return: stands before the end"


def test_regions_have_one_block() -> None:
    module = relu_chain()
    main_graph(module).body.add_block(Block())
    assert faults(module) == "graph: has 2 blocks, expected 1"


def test_modules_hold_one_graph_and_nothing_foreign() -> None:
    assert faults(ModuleOp([])) == "module: holds 0 graphs, expected 1"
    module = relu_chain()
    module.body.block.add_op(ReluOp.create(result_types=[UNKNOWN]))
    assert faults(module) == "module: holds onnx.Relu, expected onnx.graph and onnx.function"
    two = parse(text_of(relu_chain()))
    second = main_graph(relu_chain())
    second.detach()
    two.body.block.add_op(second)
    assert faults(two) == "module: holds 2 graphs, expected 1"


def test_operations_of_other_dialects_check_themselves() -> None:
    assert "builtin.unrealized_conversion_cast" not in text_of(relu_chain())
    message = one(f'"builtin.module"() ({{^bb0(%a: {F}):}}) : () -> ()')
    assert message.startswith("graph: body '0' of builtin.module: ends with nothing")


def test_all_faults_stand_in_one_message() -> None:
    message = faults(graph(f"%y = onnx.Add(%x) : {F}\n%z = onnx.Mul(%x) : {F}", X, '"x"'))
    assert message == (
        "the model has 2 faults:\n"
        "  graph: onnx.Add: has 1 inputs, expected 2\n"
        "  graph: onnx.Mul: has 1 inputs, expected 2"
    )


def test_no_more_than_twenty_faults_are_listed() -> None:
    ops = "\n".join(f"%y{i} = onnx.Add(%x) : {F}" for i in range(50))
    message = faults(graph(ops, X, '"x"'))
    assert message.startswith("the model has at least 20 faults:")
    assert message.count("\n") == 20


def test_the_same_fault_is_found_every_time() -> None:
    module = graph(f"%y = onnx.Relu(%x) : {F}\n%z = onnx.Add(%x) : {F}", X, '"x"')
    assert faults(module) == faults(module)


def test_unknown_types_are_taken_on_trust() -> None:
    verify_model(
        graph("%y = onnx.Add(%x, %u) : !onnx.unknown", f"{X}, %u: !onnx.unknown", '"x", "u"')
    )


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (UNKNOWN, None),
        (SequenceType(UNKNOWN), None),
        (OptionalType(SequenceType(UNKNOWN)), None),
    ],
)
def test_types_not_known_in_full_have_no_spelling(type_: SequenceType, expected: None) -> None:
    assert spelling(type_) is expected


def test_types_are_spelled_as_in_schemas() -> None:
    module = graph(
        "",
        "%a: !onnx.sequence<tensor<2xf16>>, %b: !onnx.optional<!onnx.sequence<tensor<*xi64>>>, "
        "%c: !onnx.map<!onnx.string, tensor<f32>>, %d: !onnx.sparse_tensor<tensor<?xf64>>",
        '"a", "b", "c", "d"',
    )
    spelled = [spelling(a.type) for a in main_graph(module).body.block.args]
    assert spelled == [
        "seq(tensor(float16))",
        "optional(seq(tensor(int64)))",
        "map(string,tensor(float))",
        "sparse_tensor(double)",
    ]
    assert spelling(MapType(UNKNOWN, UNKNOWN)) is None


MODELS = {
    "absent inputs and bodies": """
        <ir_version: 9, opset_import: ["":17, "l":1]>
        g (float[N,3] x, bool c) => (float[N,3] y)
        <float[3] w = {1,2,3}>
        {
          a = Add(x, w)
          k = Clip(a, , w)
          y = If (c) <then_branch = t () => (float[N,3] p) { p = Relu(k) },
                      else_branch = e () => (float[N,3] q) { q = l.f<alpha=0.5>(a) }>
        }
        <opset_import: ["":17], domain: "l">
        f <alpha> (u) => (v) { v = LeakyRelu<alpha:float=@alpha>(u) }
        """,
    "loop": """
        <ir_version: 8, opset_import: ["":16]>
        g (int64 n, float[2] x) => (float[2] y, float[M,2] all)
        {
          t = Constant<value = bool {1}>()
          y, all = Loop(n, t, x) <body = b (int64 i, bool k, float[2] v)
            => (bool k2, float[2] v2, float[2] s)
            { k2 = Identity(k) v2 = Add(v, v) s = Identity(v2) }>
        }
        """,
    "several types": """
        <ir_version: 8, opset_import: ["":18]>
        g (float[2,3] x, int64[1] k) => (float[2,1] v, int64[2,1] i, float16[2,3] h)
        {
          v, i = TopK(x, k)
          h = Cast<to = 10>(x)
          s = SequenceConstruct(x, x)
          l = SequenceLength(s)
        }
        """,
}


@pytest.mark.parametrize("name", MODELS)
def test_no_alarm_on_good_models(name: str) -> None:
    proto = parser.parse_model(MODELS[name])
    verify_model(import_model(proto))
    verify_model(import_model(onnx.shape_inference.infer_shapes(proto)))


def test_an_empty_region_is_a_fault_not_a_crash() -> None:
    module = relu_chain()
    old = main_graph(module).body
    old.detach_block(0)
    assert isinstance(old, Region)
    assert faults(module) == "graph: has 0 blocks, expected 1"
