"""The report as plain data."""

from __future__ import annotations

import json

from foldline.support.remarks import Remark
from foldline.support.report import EngineRow, PassRow, Report


def test_a_report_is_plain_data() -> None:
    report = Report(
        rows=[PassRow("stage1", "prune", 7, 5, 0.25)],
        remarks=[Remark("declined", "stage1", "prune", "n", "onnx.Add", "why")],
        engines=[EngineRow("host", "Add", 3, {"no kernel": 2}, 1, 0.5)],
        bounds=["too many visits"],
        seconds=1.5,
    )
    data = report.to_json()
    assert json.loads(json.dumps(data)) == data
    assert data["passes"] == [
        {
            "stage": "stage1",
            "name": "prune",
            "nodes_before": 7,
            "nodes_after": 5,
            "seconds": 0.25,
            "changes": 0,
        }
    ]
    assert data["remarks"][0]["kind"] == "declined"
    assert data["remarks"][0]["message"] == "why"
    assert data["engines"][0]["declined"] == {"no kernel": 2}
    assert data["bounds"] == ["too many visits"]
    assert data["seconds"] == 1.5
