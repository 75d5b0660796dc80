"""Targets of Reshape: how a constant can ask for sizes that are not all known."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Item


def reshape_target(
    sizes: Sequence[Expr], out: Sequence[Expr], given: Sequence[Item] = ()
) -> list[int] | None:
    """The constant target by which a Reshape of `sizes` gives `out`; `given` is the original.

    Numbers come first; 0, which copies a size, stands only where no -1 is needed; -1 stands beside
    positive numbers only, or where the original had it: so sizes of 0 reshape as before.
    """
    copied = [i < len(sizes) and sizes[i] is size for i, size in enumerate(out)]
    numbers = [size.value for size in out]
    unknown = [i for i, number in enumerate(numbers) if number is None]
    left = next((i for i, item in enumerate(given) if item == -1 and i in unknown), None)
    if any(number == 0 and not same for number, same in zip(numbers, copied, strict=True)):
        return None
    if left is None and len(unknown) == 1 and not copied[unknown[0]]:
        if any(number == 0 for number in numbers):
            return None
        left = unknown[0]
    if not all(copied[i] for i in unknown if i != left):
        return None
    return [
        -1 if i == left else 0 if number is None else number for i, number in enumerate(numbers)
    ]
