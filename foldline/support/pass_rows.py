"""The passes of the stages before fusion, as data."""

from __future__ import annotations

from foldline.support.pass_info import row

ROWS = (
    row(
        "infer-shapes",
        "O1",
        "Give every value the best element type and shape that inference can find.",
        required=True,
    ),
    row(
        "constant-folding",
        "O1",
        "Compute operators whose inputs are all constant, with the kernels that run models.",
        switch="oo.constantFolding",
        after=("infer-shapes",),
    ),
    row("eliminate-identity", "O1", "Remove operators that hand their input on unchanged."),
    row(
        "prune",
        "O1",
        "Remove operators and constants that no output depends on.",
        switch="oo.deadCodeElimination",
    ),
    row(
        "protect-quantisation",
        "O1",
        "Keep the dequantised constants that quantised rewrites look for from being folded.",
    ),
    row(
        "remove-conditionals",
        "O1",
        "Inline the branch that a constant condition takes; drop or unroll decided loops.",
        switch="oo.deadCodeElimination",
        after=("infer-shapes",),
    ),
    row(
        "replace-with-empty-const",
        "O1",
        "Replace operators whose results hold no element by empty constants.",
        switch="oo.constantFolding",
        after=("infer-shapes",),
    ),
    row(
        "dimension-compute",
        "O1",
        "Compute what hangs on shapes only, element by element, symbols included.",
        switch="oo.constantFolding",
        after=("infer-shapes",),
    ),
    row(
        "constant-clip",
        "O1",
        "Clip constants to the range of the narrower type they are cast to.",
        switch="weightClip",
        moves_bits=True,
    ),
    row(
        "infer-value-range",
        "O1",
        "Find bounds of integer values; equal bounds are a value.",
        after=("infer-shapes",),
    ),
    row(
        "potential-const-taken-effect",
        "O1",
        "Fold the values that earlier stages marked as potential constants.",
        switch="oo.constantFolding",
        after=("constant-folding",),
    ),
    row(
        "dimension-adjust",
        "O1",
        "Make targets of Reshape, Expand and Slice constant where symbols allow it.",
        switch="oo.constantFolding",
        after=("infer-shapes",),
    ),
    row(
        "recover-reshapes",
        "O1",
        "Rebuild shape vectors that stay from the earliest tensor that has their sizes.",
        switch="oo.constantFolding",
        after=("dimension-compute",),
    ),
    row(
        "reshape-remove",
        "O1",
        "Make chains of Reshape, Squeeze, Unsqueeze and Flatten one Reshape, or none.",
        after=("infer-shapes",),
    ),
    row("inline-functions", "O1", "Replace calls of local functions by their bodies."),
    row(
        "remove-isolated-constants",
        "O1",
        "Remove constants that nothing reads.",
        switch="oo.deadCodeElimination",
    ),
    row("common-subexpressions", "O2", "Compute equal operators on equal inputs once."),
    row(
        "remove-casts",
        "O2",
        "Remove casts that change nothing, and pairs of casts that lose nothing.",
        after=("infer-shapes",),
    ),
    row(
        "cancel-transposes",
        "O2",
        "Merge neighbouring transposes and remove those that move nothing.",
    ),
    row(
        "sink-transposes",
        "O2",
        "Move transposes down, through operators that allow it, to where they cancel.",
        after=("infer-shapes",),
    ),
    row(
        "slices-to-split",
        "O2",
        "Turn sibling slices that tile an axis into one Split.",
        after=("infer-shapes",),
    ),
    row(
        "stack-to-reshape",
        "O2",
        "Turn a Concat of Unsqueezes into a Concat and one Reshape.",
        after=("infer-shapes",),
    ),
    row(
        "flatten-concats",
        "O2",
        "Turn Concats of Concats along one axis into one Concat.",
        after=("infer-shapes",),
    ),
    row(
        "slices-to-space-to-depth",
        "O2",
        "Turn a Concat of every b-th row and column into SpaceToDepth.",
        after=("infer-shapes",),
    ),
    row(
        "merge-slices",
        "O2",
        "Turn slices of slices along different axes into one Slice.",
        after=("infer-shapes",),
    ),
    row(
        "drop-zero-states",
        "O2",
        "Leave out all-zero initial states of recurrent operators.",
        after=("constant-folding",),
    ),
    row(
        "conv-add-to-bias",
        "O2",
        "Make a constant channel Add after a Conv without bias its bias.",
        after=("constant-folding",),
    ),
    row(
        "absorb-expands",
        "O2",
        "Leave out an Expand whose reader broadcasts by itself.",
        after=("infer-shapes",),
    ),
    row(
        "cast-like-to-cast",
        "O2",
        "Turn CastLike into Cast where the target type is known.",
        after=("infer-shapes",),
    ),
    row(
        "gather-unsqueeze",
        "O2",
        "Select by a list of one index instead of inserting the axis again.",
        after=("infer-shapes",),
    ),
)
