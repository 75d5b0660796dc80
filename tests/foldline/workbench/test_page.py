"""The page as one document: complete, small, and safe whatever names a model has."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from foldline.support.passes import STAGES
from foldline.workbench.page import SCRIPTS, page, write_page
from tests.foldline.workbench.reported import HOSTILE, hostile_model, reported

URL = re.compile(r"https?://[\w./-]+")
ASSETS = files("foldline.workbench") / "assets"


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return reported()[2]


def read_back(html: str) -> dict[str, Any]:
    """The document as a browser finds it: the script ends at the first end tag."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script', html, re.DOTALL)
    assert match
    return json.loads(match[1])


def labels(data: dict[str, Any], stage: int) -> set[str]:
    """Names and first outputs of the nodes after a stage."""
    text, rows = data["strings"], data["stages"][stage]["rows"]
    nodes = [data["nodes"][row] for row in rows]
    return {text[node[3]] or text[node[5][0]] for node in nodes}


def test_the_document_has_every_stage_with_its_passes_and_nodes(data: dict[str, Any]) -> None:
    assert [stage["name"] for stage in data["stages"]] == ["import", *STAGES]
    assert {"twice", "same", "relu"} <= labels(data, 0)
    assert {"relu"} <= labels(data, len(STAGES))
    assert not {"conv", "same"} & labels(data, len(STAGES))
    assert all(stage["passes"] for stage in data["stages"][1:])


def test_what_a_stage_leaves_has_the_row_it_had(data: dict[str, Any]) -> None:
    rows = [set(stage["rows"]) for stage in data["stages"]]
    assert rows[0] & rows[-1]
    assert len(data["nodes"]) < sum(map(len, rows))


def test_judgements_are_of_nodes_that_are_there(data: dict[str, Any]) -> None:
    stages = data["stages"]
    for number, stage in enumerate(stages[1:], 1):
        assert {row for row, _, _ in stage["before"]} <= set(stages[number - 1]["rows"])
        assert {row for row, _, _ in stage["after"]} <= set(stage["rows"])
    statuses = {data["strings"][status] for stage in stages for _, status, _ in stage["before"]}
    assert {"folded", "fused", "removed"} <= statuses


def test_remarks_and_regions_are_in() -> None:
    compiled, _, document = reported()
    text = document["strings"]
    assert [[text[part] for part in row] for row in document["remarks"]] == [
        list(remark) for remark in compiled.report.remarks
    ]
    assert len(document["region_of"]) == len(document["order"])


def test_the_page_holds_the_document(data: dict[str, Any]) -> None:
    assert read_back(page(data)) == json.loads(json.dumps(data))


def test_names_cannot_leave_their_script() -> None:
    data = reported(hostile_model(), **{"oo.level": "O0"})[2] | {"title": HOSTILE}
    html = page(data)
    assert HOSTILE not in html
    assert "<b>&" not in html
    assert HOSTILE in read_back(html)["strings"]
    assert "&lt;/script&gt;&lt;b&gt;" in html


def test_the_page_asks_the_network_for_nothing(data: dict[str, Any]) -> None:
    vendored = "".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS[:2])
    in_comments = set(URL.findall(vendored))
    html = page(data)
    assert set(URL.findall(html)) <= in_comments
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=\"(?!data:)", html)
    assert "default-src 'none'" in html


def test_scripts_are_strict_and_make_no_code() -> None:
    for name in SCRIPTS[2:]:
        text = (ASSETS / name).read_text("utf-8")
        assert text.startswith('"use strict";\n')
        assert not re.search(r"\beval\(|new Function|innerHTML|document\.write", text), name
        assert "</script" not in text


def test_what_is_vendored_has_its_licence() -> None:
    text = (ASSETS / "LICENSES.txt").read_text("utf-8")
    for name in SCRIPTS[:2]:
        assert name in text
    assert text.count("Permission is hereby granted") == 2


def test_the_page_is_written_whole(data: dict[str, Any], tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    write_page(target, data)
    assert target.read_text("utf-8").startswith("<!doctype html>")
    assert target.read_text("utf-8").rstrip().endswith("</html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
