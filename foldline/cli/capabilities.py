"""What an optimisation can do: what can be turned on or off, rewrites, and what would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.output import model_source, print_json, print_table, progress
from foldline.support.passes import PASSES, PassInfo

if TYPE_CHECKING:
    from foldline.cli.compile import Job
    from foldline.dry_run import Finding

SHOWN = 6
"""So many nodes are named, unless more is asked for."""


def print_capabilities(verbose: bool, as_json: bool) -> None:
    """The passes by what they are about, each with the flag that changes what is usual."""
    from foldline.dry_run import optional_passes

    off, groups = set(optional_passes()), _groups()
    rows = [
        {
            "name": name,
            "category": groups[name],
            "flag": _flag(info, is_on=name not in off),
            "default": name not in off,
            "from": info.level,
            "preserves_bits": info.preserves_bits,
            "description": info.help,
        }
        for name, info in sorted(PASSES.items(), key=lambda item: groups[item[0]])
    ]
    if as_json:
        print_json(rows)
    elif verbose:
        headers = ("category", "name", "default", "from", "bits", "flag", "description")
        keys = ("category", "name", "default", "from", "preserves_bits", "flag", "description")
        print_table("Capabilities", headers, ([r[k] for k in keys] for r in rows), err=False)
    else:
        for category in dict.fromkeys(groups[name] for name in PASSES):
            click.echo(f"{category}:")
            for row in rows:
                if row["category"] == category:
                    click.echo(f"  {row['flag']}")
        click.echo(f"{len(rows)} capabilities; -v says what they do, --list-rewrites how")


def _flag(info: PassInfo, *, is_on: bool) -> str:
    """The flag that changes what a pass usually does."""
    if info.required:
        return f"{info.name} (always)"
    return f"--{'disable' if is_on else 'enable'}-{info.name}"


def _groups() -> dict[str, str]:
    """What each pass is about: the folder that it stands in."""
    from foldline.stages.passes import ALL_PASSES

    found = {a_pass.INFO.name: a_pass.__module__.split(".")[-2] for a_pass in ALL_PASSES}
    return {name: found.get(name, "other") for name in PASSES}


def print_rewrites(verbose: bool, as_json: bool) -> None:
    """The transforms of the pipeline: what they look for, and the file that holds them."""
    rows = list(_rewrites())
    if as_json:
        print_json(rows)
        return
    if not verbose:
        rows = [{**row, "looks for": row["looks for"][:1]} for row in rows]
    headers = ("rewrite", "flag", "looks for", "file")
    cells = (
        (r["rewrite"], r["flag"], " | ".join(r["looks for"]) or "a region", r["file"]) for r in rows
    )
    print_table("Rewrites", headers, cells, err=False)


def _rewrites() -> Iterator[dict[str, Any]]:
    from foldline.dry_run import optional_passes
    from foldline.stages.pipeline import PIPELINE
    from foldline.stages.rewrite.rule_pass import RulePass
    from foldline.stages.rewrite.transform import Rule

    off = set(optional_passes())
    steps = (step for stage in PIPELINE for step in stage.steps if step.kind == "rewriting")
    seen: set[str] = set()
    for placed in (placed for step in steps for placed in step.placed):
        a_pass = placed.run
        if a_pass.name in seen:
            continue
        seen.add(a_pass.name)
        action = a_pass.transform.action if isinstance(a_pass, RulePass) else None
        patterns = [s.pattern for s in action.searches] if isinstance(action, Rule) else []
        file = "/".join(type(a_pass).__module__.split(".")[1:]) + ".py"
        yield {
            "rewrite": a_pass.name,
            "flag": _flag(a_pass.INFO, is_on=a_pass.name not in off),
            "looks for": [" + ".join(node.label for node in p.nodes) for p in patterns],
            "what": a_pass.INFO.help,
            "file": file,
        }


def print_findings(job: Job, verbose: bool, as_json: bool) -> None:
    """What optional passes would change in a model."""
    from foldline.dry_run import dry_run

    source = model_source(job.model)
    with progress(f"trying what could be done to {job.model}"):
        found = list(dry_run(source, options=job.graph, session=job.session, rules=job.rules))
    if as_json:
        rows = [_finding_json(finding) for finding in found if not finding.problem]
        print_json({"model": job.model, "findings": rows})
    for finding in found:
        if finding.problem:
            click.echo(f"warning: {finding.name} was not tried: {finding.problem}", err=True)
        elif not as_json:
            _print_finding(finding, verbose)
    if not as_json and all(finding.problem for finding in found):
        click.echo(f"{job.model}: no optional pass would change anything")


def _finding_json(finding: Finding) -> dict[str, Any]:
    changes = finding.changes
    nodes = {
        kind: [{"operator": op, "node": name} for op, name in getattr(changes, kind)]
        for kind in ("removed", "added", "modified")
    }
    constants = dict(zip(("removed", "added", "modified"), changes.constants, strict=True))
    flag = f"--enable-{finding.name}"
    return {"name": finding.name, "flag": flag, "nodes": nodes, "constants": constants}


def _print_finding(finding: Finding, verbose: bool) -> None:
    changes, info = finding.changes, PASSES[finding.name]
    click.echo(f"--enable-{finding.name} ({_groups()[finding.name]})")
    click.echo(f"  {info.help}")
    removed, added, modified = changes.removed, changes.added, changes.modified
    click.echo(f"  nodes: -{len(removed)} +{len(added)} ~{len(modified)}")
    for sign, nodes in (("-", removed), ("+", added), ("~", modified)):
        if nodes:
            click.echo(f"    {sign} {_spelled(nodes, verbose)}")
    gone, new, other = changes.constants
    click.echo(f"  constants: -{gone} +{new} ~{other}")


def _spelled(nodes: Sequence[tuple[str, str]], verbose: bool) -> str:
    """How many nodes of each operator, and names of some."""
    counts = Counter(op for op, _ in nodes)
    kinds = ", ".join(f"{count} {op}" for op, count in sorted(counts.items()))
    names = [name for _, name in nodes]
    shown = names if verbose else names[:SHOWN]
    more = f", and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return f"{kinds}: {', '.join(shown)}{more}"
