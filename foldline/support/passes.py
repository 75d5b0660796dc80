"""What is known of every pass before any is loaded: name, level, switch, help.

Pass classes refer to a row (`INFO = PASSES["constant-folding"]`); options, command-line flags,
the YAML schema and `docs/passes.md` are made from the table. Order of running is not here: it is
the position in the stages' tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["O0", "O1", "O2", "O3"]
LEVELS: tuple[Level, ...] = ("O0", "O1", "O2", "O3")

STAGES = ("prepare", "stage1", "stage2", "before_fusion", "fusion")
"""Names of the stages, in their order."""


@dataclass(frozen=True)
class PassInfo:
    """One pass, as data."""

    name: str
    """Kebab-case: also its file, class, flag and test."""
    level: Literal["O1", "O2", "O3"]
    """The lowest `oo.level` at which it runs by itself."""
    switch: str
    """Key of the option that turns it on and off together with others, or ''."""
    preserves_bits: bool
    """Outputs are the same bit for bit with and without it; exact mode runs no others."""
    opt_in: bool
    """Runs only when named by `passes.enable`, whatever the level."""
    runs_after: tuple[str, ...]
    """Passes whose work it builds on: they come earlier, and are on whenever it is enabled."""
    help: str
    """One sentence for users."""
    required: bool = False
    """The stages rely on it: from its level on it cannot be disabled."""


_ROWS = (
    PassInfo(
        name="infer-shapes",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Give every value the best element type and shape that inference can find.",
        required=True,
    ),
    PassInfo(
        name="constant-folding",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Compute operators whose inputs are all constant, with the kernels that run models.",
    ),
    PassInfo(
        name="eliminate-identity",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Remove operators that hand their input on unchanged.",
    ),
    PassInfo(
        name="prune",
        level="O1",
        switch="oo.deadCodeElimination",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Remove operators and constants that no output depends on.",
    ),
    PassInfo(
        name="merge-equal-constants",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Keep one of several constants that hold the same type and the same bits.",
    ),
    PassInfo(
        name="protect-quantisation",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Keep the dequantised constants that quantised rewrites look for from being folded.",
    ),
    PassInfo(
        name="remove-conditionals",
        level="O1",
        switch="oo.deadCodeElimination",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Inline the branch that a constant condition takes; drop or unroll decided loops.",
    ),
    PassInfo(
        name="replace-with-empty-const",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Replace operators whose results hold no element by empty constants.",
    ),
    PassInfo(
        name="dimension-compute",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Compute what hangs on shapes only, element by element, symbols included.",
    ),
    PassInfo(
        name="constant-clip",
        level="O1",
        switch="weightClip",
        preserves_bits=False,
        opt_in=False,
        runs_after=(),
        help="Clip constants to the range of the narrower type they are cast to.",
    ),
    PassInfo(
        name="infer-value-range",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Find bounds of integer values; equal bounds are a value.",
    ),
    PassInfo(
        name="potential-const-taken-effect",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("constant-folding",),
        help="Fold the values that earlier stages marked as potential constants.",
    ),
    PassInfo(
        name="dimension-adjust",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Make targets of Reshape, Expand and Slice constant where symbols allow it.",
    ),
    PassInfo(
        name="recover-reshapes",
        level="O1",
        switch="oo.constantFolding",
        preserves_bits=True,
        opt_in=False,
        runs_after=("dimension-compute",),
        help="Rebuild shape vectors that stay from the earliest tensor that has their sizes.",
    ),
    PassInfo(
        name="reshape-remove",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Make chains of Reshape, Squeeze, Unsqueeze and Flatten one Reshape, or none.",
    ),
    PassInfo(
        name="inline-functions",
        level="O1",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Replace calls of local functions by their bodies.",
    ),
    PassInfo(
        name="remove-isolated-constants",
        level="O1",
        switch="oo.deadCodeElimination",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Remove constants that nothing reads.",
    ),
    PassInfo(
        name="common-subexpressions",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Compute equal operators on equal inputs once.",
    ),
    PassInfo(
        name="remove-casts",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Remove casts that change nothing, and pairs of casts that lose nothing.",
    ),
    PassInfo(
        name="cancel-transposes",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=(),
        help="Merge neighbouring transposes and remove those that move nothing.",
    ),
    PassInfo(
        name="sink-transposes",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Move transposes down, through operators that allow it, to where they cancel.",
    ),
    PassInfo(
        name="slices-to-split",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn sibling slices that tile an axis into one Split.",
    ),
    PassInfo(
        name="stack-to-reshape",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn a Concat of Unsqueezes into a Concat and one Reshape.",
    ),
    PassInfo(
        name="flatten-concats",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn Concats of Concats along one axis into one Concat.",
    ),
    PassInfo(
        name="slices-to-space-to-depth",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn a Concat of every b-th row and column into SpaceToDepth.",
    ),
    PassInfo(
        name="merge-slices",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn slices of slices along different axes into one Slice.",
    ),
    PassInfo(
        name="drop-zero-states",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("constant-folding",),
        help="Leave out all-zero initial states of recurrent operators.",
    ),
    PassInfo(
        name="conv-add-to-bias",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("constant-folding",),
        help="Make a constant channel Add after a Conv without bias its bias.",
    ),
    PassInfo(
        name="absorb-expands",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Leave out an Expand whose reader broadcasts by itself.",
    ),
    PassInfo(
        name="cast-like-to-cast",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Turn CastLike into Cast where the target type is known.",
    ),
    PassInfo(
        name="gather-unsqueeze",
        level="O2",
        switch="",
        preserves_bits=True,
        opt_in=False,
        runs_after=("infer-shapes",),
        help="Select by a list of one index instead of inserting the axis again.",
    ),
    PassInfo(
        name="conv-batchnorm-fold",
        level="O3",
        switch="",
        preserves_bits=False,
        opt_in=False,
        runs_after=(),
        help="Fold a BatchNormalization into the weights and the bias of the Conv before it.",
    ),
)

PASSES: dict[str, PassInfo] = {row.name: row for row in _ROWS}
"""Every pass by name."""
