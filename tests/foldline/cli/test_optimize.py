"""`foldline optimize`: lists, the dry run, and the ways to name models. Rows A01 to A05."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import ModelProto, numpy_helper, parser

import foldline
from foldline.cli import root
from foldline.dry_run import digest
from foldline.stages.passes.algebraic._common import FreshNames
from foldline.stages.pipeline import PIPELINE
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from tests.stages.check import values
from tests.stages.passes.algebraic.graphs import compare, draw, feeds, ready

NAMES = (
    "conv-add-batch-normalization-folding",
    "conv-channel-affine-folding",
    "exp-positive-scale-folding",
    "gather-slice-to-split-fusion",
    "static-split-to-slice",
)

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,2,2,2] x) => (float[1,2,2,2] p, float[1,2,2,2] q, float[1,2,2,2] z) {
    c = Conv(x, w) l = Slice(c, k0, k2, k1) r = Slice(c, k2, k4, k1)
    [scaled] p = Mul(l, s) [moved] q = Add(r, s)
    a = Add(x, b) e = Exp(a) [grown] z = Mul(e, t) }"""


def proto() -> ModelProto:
    """Row A04: a Conv with two Slices and their Mul and Add, beside a chain with an Exp."""
    model = parser.parse_model(TEXT)
    arrays = {
        "w": draw(4, 2, 1, 1),
        "s": draw(2, 1, 1),
        "b": draw(2, 1, 1),
        "t": np.float32(2.5),
        **{f"k{n}": np.asarray([n]) for n in (0, 1, 2, 4)},
    }
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    return model


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(proto(), "m.onnx")


def run(*arguments: str, code: int = 0, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(root, ["optimize", *arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def operators(path: str) -> list[str]:
    return sorted(n.op_type for n in onnx.load(path).graph.node if n.op_type != "Constant")


@pytest.mark.parametrize("name", NAMES)
def test_row_A01_registry(name: str) -> None:
    assert PASSES[name].opt_in
    assert not resolve({}).enabled(name)
    for level in ("O0", "O1", "O2", "O3"):
        assert not resolve({"oo.level": level}).enabled(name)
        on = resolve({"oo.level": level, f"passes.{name}": True})
        assert [other for other in NAMES if on.enabled(other)] == [name]
    assert not resolve({f"passes.{name}": False}).enabled(name)
    keeps = PASSES[name].preserves_bits
    assert keeps == (name in ("gather-slice-to-split-fusion", "static-split-to-slice"))
    assert resolve({"mode": "exact", f"passes.{name}": True}).enabled(name) == keeps


def test_row_A02_list_capabilities() -> None:
    for flag in ("--list-capabilities", "-l"):
        lines = run(flag).stdout.splitlines()
        assert {f"  --enable-{name}" for name in NAMES} <= set(lines)
        assert "algebraic:" in lines
        assert "  --disable-constant-folding" in lines
        assert lines[-1].startswith(f"{len(PASSES)} capabilities")


def test_list_capabilities_verbose_and_as_json() -> None:
    text = run("-l", "-v").stdout
    assert all(info.help in text for info in PASSES.values())
    rows = json.loads(run("--list-capabilities", "--json").stdout)
    assert {row["name"] for row in rows} == set(PASSES)
    exp = next(row for row in rows if row["name"] == "exp-positive-scale-folding")
    assert exp["default"] is False
    assert exp["category"] == "algebraic"
    assert "relaxed floating-point overflow semantics" in exp["description"]


def test_list_rewrites() -> None:
    text = run("--list-rewrites").stdout
    assert "Conv + Add + BatchNormalization" in text
    rows = {row["rewrite"]: row for row in json.loads(run("--list-rewrites", "--json").stdout)}
    assert set(NAMES) <= set(rows)
    root_folder = Path(foldline.__file__).parent
    assert all((root_folder / row["file"]).is_file() for row in rows.values())
    assert rows["static-split-to-slice"]["looks for"] == ["Split"]
    assert rows["static-split-to-slice"]["flag"] == "--enable-static-split-to-slice"


def test_row_A03_place_in_the_pipeline() -> None:
    """Before all fusions; nothing of them runs that is not asked for."""
    step = next(step for step in PIPELINE[-1].steps if step.kind == "rewriting")
    order = [placed.run.name for placed in step.placed]
    start = order.index(NAMES[0])
    assert order[start : start + len(NAMES)] == list(NAMES)
    assert start < order.index("conv-batchnorm-fold")
    rows = foldline.compile(proto(), options={"oo.level": "O3"}).report.rows
    assert not {row.name for row in rows} & set(NAMES)


def test_row_A04_three_flags_at_once() -> None:
    flags = [f"--enable-{name}" for name in NAMES[1:4]]
    run("-m", "m.onnx", "-o", "o.onnx", *flags, "--json")
    assert operators("o.onnx") == ["Add", "Conv", "Exp", "Split"]
    before, after = proto(), onnx.load("o.onnx")
    assert list(before.graph.output) == list(after.graph.output)
    fed = feeds(before)
    compare(values(ready(before), fed), values(ready(after), fed), 2e-5)


def test_row_A05_many_names_of_one_prefix() -> None:
    names = FreshNames(ready(proto()))
    assert [names.fresh("w") for _ in range(31)] == [f"w_{number}" for number in range(1, 32)]
    assert names.fresh("new") == "new"
    assert names.fresh("new") == "new_1"


def test_row_A05_no_name_is_asked_for_twice() -> None:
    """Names of one prefix go on from the last: so many look-ups as names."""

    class Counting(set[str]):
        asked = 0

        def __contains__(self, name: object) -> bool:
            self.asked += 1
            return super().__contains__(name)

    names = FreshNames(ready(proto()))
    names.taken = taken = Counting()
    assert [names.fresh("p") for _ in range(32)] == ["p", *(f"p_{n}" for n in range(1, 32))]
    assert taken.asked <= 40


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "m.onnx", "-o", "o.onnx"],
        ["--model=m.onnx", "--output=o.onnx", "--ge.oo.level=O1"],
        ["--model", "m.onnx", "--output", "o.onnx", "--ge.oo.level", "Basic"],
        ["m.onnx", "o.onnx"],
    ],
)
def test_spellings(arguments: list[str]) -> None:
    run(*arguments, "--enable-exp-positive-scale-folding")
    assert operators("o.onnx").count("Mul") == 1
    assert "Exp" in operators("o.onnx")


def test_the_usual_output() -> None:
    run("-m", "m.onnx")
    assert operators("m_opt.onnx")
    assert "exists" in run("-m", "m.onnx", code=1).stderr
    run("-m", "m.onnx", "--overwrite")
    assert "missing OUT" in run("-m", "-", code=2, stdin=b"").stderr


def test_a_configuration_by_its_short_flag() -> None:
    Path("c.yaml").write_text("passes: {enable: [exp-positive-scale-folding]}\n")
    run("-m", "m.onnx", "-o", "o.onnx", "-c", "c.yaml")
    assert operators("o.onnx").count("Mul") == 1
    run("-m", "m.onnx", "-o", "p.onnx", "-c", "c.yaml", "--disable-exp-positive-scale-folding")
    assert operators("p.onnx").count("Mul") == 2


def test_check_optim_names_what_would_change() -> None:
    before = Path("m.onnx").read_bytes()
    text = run("-m", "m.onnx", "--check-optim").stdout
    assert "--enable-exp-positive-scale-folding (algebraic)" in text
    exp = text[text.index("--enable-exp-positive") :].splitlines()
    assert exp[2] == "  nodes: -1 +0 ~2"
    assert "1 Mul -> Exp" in exp[4]
    assert "grown" in exp[4]
    assert "--enable-static-split-to-slice" in text
    assert "--enable-conv-add-batch-normalization-folding" not in text
    assert sorted(path.name for path in Path().iterdir()) == ["m.onnx"]
    assert Path("m.onnx").read_bytes() == before


def test_check_optim_writes_nothing_where_an_output_is_named() -> None:
    run("-m", "m.onnx", "-o", "o.onnx", "--check-optim")
    run("m.onnx", "--check-optim", "-v")
    assert not Path("o.onnx").exists()


def test_check_optim_as_json() -> None:
    document = json.loads(run("-m", "m.onnx", "--check-optim", "--json").stdout)
    findings = {finding["name"]: finding for finding in document["findings"]}
    exp = findings["exp-positive-scale-folding"]
    assert exp["flag"] == "--enable-exp-positive-scale-folding"
    assert {"operator": "Mul -> Exp", "node": "grown"} in exp["nodes"]["modified"]
    assert exp["constants"]["removed"] >= 1
    conv = findings["conv-channel-affine-folding"]
    assert len(conv["nodes"]["removed"]) - len(conv["nodes"]["added"]) == 2


def test_check_optim_leaves_out_what_is_on_or_off_by_request() -> None:
    text = run("-m", "m.onnx", "--check-optim", "--enable-exp-positive-scale-folding").stdout
    assert "exp-positive-scale-folding" not in text
    text = run("-m", "m.onnx", "--check-optim", "--disable-exp-positive-scale-folding").stdout
    assert "exp-positive-scale-folding" not in text
    assert "conv-channel-affine-folding" in text


def test_check_optim_without_findings() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    onnx.save(parser.parse_model(text), "r.onnx")
    assert run("-m", "r.onnx", "--check-optim").stdout == (
        "r.onnx: no optional pass would change anything\n"
    )
    assert json.loads(run("-m", "r.onnx", "--check-optim", "--json").stdout)["findings"] == []


def test_check_optim_of_a_broken_model() -> None:
    Path("bad.onnx").write_bytes(b"\x00not a model")
    assert "no ONNX model" in run("-m", "bad.onnx", "--check-optim", code=1).stderr
    assert "missing IN" in run("--check-optim", code=2).stderr


def test_check_optim_and_signed_zeros() -> None:
    """Constants are compared bit by bit."""
    (plus, minus), (again,) = (
        [digest(numpy_helper.from_array(np.float32([zero]), name)) for zero in zeros]
        for name, zeros in (("a", (0.0, -0.0)), ("b", (0.0,)))
    )
    assert plus != minus
    assert plus == again
