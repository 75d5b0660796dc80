from __future__ import annotations

from pathlib import Path

import pytest

from foldline.support.errors import InvalidOption
from foldline.support.yaml_file import read_yaml


def test_reads_plain_data(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: [1, true]\nb: {c: None}\n")
    assert read_yaml(file) == {"a": [1, True], "b": {"c": "None"}}
    file.write_text("# nothing\n")
    assert read_yaml(file) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "key 'a' is said twice"),
        ("x: {a: 1, a: 1}\n", "key 'a' is said twice"),
        ("- a\n", "holds a list, expected a mapping"),
        ("1: a\n", "keys must be text, got 1"),
        ("a: [\n", "is not valid YAML"),
        ("a: !!python/object/apply:os.system ['true']\n", "is not valid YAML"),
    ],
)
def test_refuses(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(InvalidOption, match=message) as caught:
        read_yaml(file)
    assert str(file) in str(caught.value)


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="cannot be read"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(InvalidOption, match="cannot be read"):
        read_yaml(tmp_path / "latin.yaml")


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: &x {k: 1}\nb: {<<: *x, l: 2}\n")
    assert read_yaml(file)["b"] == {"k": 1, "l": 2}
