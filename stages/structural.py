"""The structural rewrites of level O2: each preserves bits, and each leaves fewer nodes.

They run wherever a traversal may find new chances for them: after folding, after inlining, and
before fusion.
"""

from __future__ import annotations

from foldline.stages.pass_base import NodePass
from foldline.stages.passes.structure.absorb_expands import AbsorbExpands
from foldline.stages.passes.structure.conv_add_to_bias import ConvAddToBias
from foldline.stages.passes.structure.drop_zero_states import DropZeroStates
from foldline.stages.passes.structure.flatten_concats import FlattenConcats
from foldline.stages.passes.structure.gather_unsqueeze import GatherUnsqueeze
from foldline.stages.passes.structure.merge_slices import MergeSlices
from foldline.stages.passes.structure.sink_transposes import SinkTransposes
from foldline.stages.passes.structure.slices_to_space_to_depth import SlicesToSpaceToDepth
from foldline.stages.passes.structure.slices_to_split import SlicesToSplit
from foldline.stages.passes.structure.stack_to_reshape import StackToReshape
from foldline.stages.passes.structure.unflatten_transposes import UnflattenTransposes

STRUCTURAL: tuple[tuple[NodePass, str], ...] = (
    (GatherUnsqueeze(), "one spelling of an index, so that equal ones are seen to be equal"),
    (AbsorbExpands(), "who broadcasts by itself needs no Expand"),
    (SlicesToSplit(), "once bounds are constants"),
    (StackToReshape(), "once all parts are known to stand alike"),
    (FlattenConcats(), "after stacks, of which a whole Concat becomes one"),
    (SlicesToSpaceToDepth(), "once bounds and sizes are constants"),
    (MergeSlices(), "after all that looks for slices of one value side by side"),
    (DropZeroStates(), "once the state is a constant"),
    (ConvAddToBias(), "once the addend is a constant"),
    (UnflattenTransposes(), "before what moves transposes on, or merges them"),
    (SinkTransposes(), "last, as it only moves what none of the others could remove"),
)
