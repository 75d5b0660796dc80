"""Rules as data: a pattern, and what takes its place, as expressions in YAML.

    rules:
      - name: silu
        pattern: x * Sigmoid(x)
        replace: Swish(x)
        runs_after: [gelu]
        preserves_bits: false
        min_opset: 13

The grammar stands in `expressions`. Several patterns are spellings of one thing. Nothing in such a
file is executed. A match is declined where the model's operator set lacks what replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.expressions import PatternReader, Template
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.transform import Transform, check_name, made_rule, opset_bounds
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean
from foldline.support.yaml_file import read_yaml


class RuleData(BaseModel):
    """One rule."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    pattern: str | list[str]
    replace: str
    runs_after: list[str] = []
    preserves_bits: bool = False
    min_opset: int | None = None
    max_opset: int | None = None


class RuleFile(BaseModel):
    """A file of rules."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rules: list[RuleData]


def load_rules(path: str | Path) -> list[Transform]:
    """The rules of a YAML file.

    Raises InvalidArgumentError that names everything wrong, InvalidOption for what is no YAML.
    """
    return rules_from(read_yaml(Path(path)), str(path))


def rules_from(data: Mapping[str, Any] | Sequence[Any], where: str = "rules") -> list[Transform]:
    """The rules of data as YAML gives them: a list, or a mapping of `rules` to one.

    Raises InvalidArgumentError that names everything wrong.
    """
    given = data if isinstance(data, Mapping) else {"rules": list(data)}
    try:
        rules = RuleFile.model_validate(given).rules
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise _refused(where, problems) from None
    made: list[Transform] = []
    problems: list[str] = []
    for place, rule in enumerate(rules):
        try:
            made.append(_transform(rule, [earlier.name for earlier in made]))
        except InvalidArgumentError as error:
            problems.append(f"rules.{place} ({rule.name}): {error}")
    if problems:
        raise _refused(where, problems)
    return made


def _refused(where: str, problems: Sequence[str]) -> InvalidArgumentError:
    return InvalidArgumentError("\n".join(f"{where}: {problem}" for problem in problems))


def _transform(rule: RuleData, earlier: Sequence[str]) -> Transform:
    check_name(rule.name)
    for name in rule.runs_after:
        if name not in (known := [*PASSES, *earlier]):
            raise InvalidArgumentError(f"runs_after: no rule '{name}'{did_you_mean(name, known)}")
    spellings = [rule.pattern] if isinstance(rule.pattern, str) else rule.pattern
    templates: dict[int, Template] = {}
    patterns: list[Pattern] = []
    for text in spellings:
        reader = PatternReader()
        pattern = _of("pattern", reader.pattern, text)
        templates[id(pattern.nodes[0])] = _of("replace", Template.read, rule.replace, reader)
        patterns.append(pattern)

    def template(match: Match) -> Template:
        return templates[id(match.pattern.nodes[0])]

    def condition(match: Match) -> bool:
        problem = template(match).problem(match)
        return True if problem is None else match.refuse(problem)

    def replace(build: RuleBuilder, match: Match) -> list[Any]:
        return template(match).build(build, match)

    bounds = opset_bounds(rule.name, rule.min_opset, rule.max_opset)
    return made_rule(
        rule.name, patterns, replace, condition, rule.runs_after, rule.preserves_bits, bounds
    )


def _of(part: str, read: Any, *given: Any) -> Any:
    try:
        return read(*given)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{part}: {error}") from None
