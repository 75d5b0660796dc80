"""What an exact kernel is made of: a walk from its function to all that it refers to.

Every name that a function reads, called or handed on, is looked up where the function was
defined: in its closure, its module, NumPy. Functions and classes of `foldline.kernels` are walked
in turn, anything else must be on a list.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from foldline.kernels import exact_products, registry
from foldline.kernels.parallel import parallel_for

NUMPY = frozenset(
    # + - * / sqrt rint floor, and what is defined by them without rounding
    "add subtract multiply divide true_divide negative absolute abs square reciprocal sqrt rint "
    "floor ceil trunc fmod remainder floor_divide divmod copysign signbit sign frexp ldexp "
    # comparisons, selections, logic, bits
    "fmin fmax equal not_equal less less_equal greater greater_equal maximum minimum where isnan "
    "isinf isfinite isneginf logical_and logical_or logical_not logical_xor bitwise_and bitwise_or "
    "bitwise_xor invert left_shift right_shift array_equal argmax argmin clip nan_to_num any all "
    "searchsorted flatnonzero nonzero count_nonzero "
    # memory: making, copying, moving, indexing
    "array asarray ascontiguousarray empty empty_like zeros zeros_like ones ones_like full "
    "full_like arange copyto concatenate stack repeat tile pad take take_along_axis "
    "put_along_axis broadcast_to broadcast_shapes broadcast_arrays expand_dims moveaxis swapaxes "
    "transpose reshape ravel flip roll split array_split diagonal triu tril eye ndindex ndarray "
    "lib may_share_memory squeeze unravel_index atleast_1d atleast_2d meshgrid indices "
    "fromiter frombuffer ix_ ogrid tri append select setdiff1d compress isin lexsort argsort sort "
    "unique ndim shape size real imag "
    "result_type can_cast iinfo finfo dtype errstate newaxis inf nan pi integer floating generic "
    "bool_ int8 int16 int32 int64 intp uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128 object_ str_ ufunc number "
    # random bits, which the seed fixes, as multiples of a power of two
    "random".split()
)
"""Names of NumPy an exact kernel may read."""

METHODS = frozenset(
    # of arrays
    "astype reshape copy view transpose swapaxes take repeat item tolist ravel flatten fill any "
    "all squeeze nonzero setflags flags shape dtype ndim size data T nbytes itemsize strides kind "
    "real imag flat argmax argmin sort argsort searchsorted compress byteswap newbyteorder type "
    "min max char name names "
    # of a ufunc: an order that cannot matter, or that the definition fixes
    "reduce accumulate at identity "
    # of iinfo, finfo and Python's own types
    "bits eps tiny append extend insert pop items keys values get setdefault update add index "
    "join split strip lower upper start stop step startswith endswith encode decode casefold "
    "replace partition rpartition is_integer bit_length isdisjoint issubset union discard remove "
    "count format writeable c_contiguous owndata hasobject fromhex hex from_bytes to_bytes "
    "stride_tricks as_strided __module__ __qualname__ "
    "translate fromkeys difference tobytes isbuiltin isupper match fullmatch group groupdict end "
    "default_rng RandomState Generator PCG64 uniform random".split()
)
"""Attributes of objects that are not known by name: methods of arrays and of Python's types."""

MODULES: Mapping[str, frozenset[str]] = {
    "math": frozenset(
        "prod ceil floor trunc inf nan pi isnan isinf isfinite sqrt gcd ldexp".split()
    ),
    "itertools": frozenset("product chain accumulate pairwise combinations repeat count".split()),
    "operator": frozenset("itemgetter index".split()),
    "functools": frozenset("partial cache lru_cache reduce wraps".split()),
    "dataclasses": frozenset("replace field dataclass".split()),
    "threading": frozenset(("Lock",)),
    "re": frozenset("compile escape error".split()),
    "ml_dtypes": frozenset("bfloat16 finfo iinfo".split()),
}
"""Names of other modules it may read."""

BUILTINS = frozenset(
    "abs all any bool bytes dict divmod enumerate filter float frozenset getattr hasattr hash "
    "id int isinstance issubclass iter len list map max min next object ord chr range repr "
    "reversed round set slice sorted str sum tuple type vars zip Ellipsis NotImplemented complex "
    "ValueError TypeError IndexError KeyError ImportError ArithmeticError OverflowError "
    "memoryview bytearray NotImplementedError UnicodeDecodeError StopIteration AssertionError "
    "super print".split()
)

TRUSTED: Mapping[Callable[..., Any], str] = {
    exact_products.integer_product: "refuses floats; a sum of integers below 2^53 is exact",
    exact_products._by_einsum: "used only where einsum_is_exact() has proved its bits",
    exact_products.einsum_is_exact: "the proof",
    registry.find_kernel: "a kernel of the grades it is asked for; exact ones are walked",
    parallel_for: "runs tiles that write apart",
    registry.aligned_bytes: "memory",
}
"""Functions that are not walked, and why."""

OPERATORS = {ast.MatMult: "@", ast.Pow: "**"}
UNORDERED = {"add", "multiply", "subtract", "divide"}
"""Ufuncs whose `reduce` takes an order of its own."""

HOME = ("foldline.kernels",)
"""Where functions are walked; those of other modules must be on a list."""

Found = Iterator[tuple[str, str]]


def violations(function: Callable[..., Any]) -> Found:
    """(where, what) for all that `function` refers to and may not."""
    walk = _Walk()
    yield from walk.visit(function)


class _Walk:
    def __init__(self) -> None:
        self.seen: set[int] = set()

    def visit(self, value: Any) -> Found:
        """Follow whatever a name stands for."""
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        if id(value) in {id(trusted) for trusted in TRUSTED}:
            return
        if isinstance(value, functools.partial):
            yield from self.visit(value.func)
            for part in (*value.args, *value.keywords.values()):
                yield from self.visit(part)
        elif isinstance(value, np.ufunc):
            if value.__name__ not in NUMPY:
                yield f"ufunc {value.__name__}", "is not on the list"
        elif hasattr(value, "__wrapped__"):
            yield from self.visit(value.__wrapped__)
            if isinstance(value, FunctionType):
                yield from self._function(value)
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif inspect.isclass(value):
            yield from self._class(value)
        elif inspect.ismethod(value):
            yield from self.visit(value.__func__)
        elif isinstance(value, Mapping):
            for part in value.values():
                yield from self.visit(part)
        elif isinstance(value, list | tuple | set | frozenset):
            for part in value:
                yield from self.visit(part)
        elif dataclasses.is_dataclass(value):
            yield from self._class(type(value))
            for field in dataclasses.fields(value):
                yield from self.visit(getattr(value, field.name))

    def _class(self, cls: type) -> Found:
        if not cls.__module__.startswith(HOME):
            return
        for member in vars(cls).values():
            target = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            target = target.fget if isinstance(target, property) else target
            target = target.func if isinstance(target, functools.cached_property) else target
            if isinstance(target, FunctionType) and "<string>" not in target.__code__.co_filename:
                yield from self.visit(target)

    def _function(self, function: FunctionType) -> Found:
        if not function.__module__.startswith(HOME):
            return
        where = f"{function.__module__}.{function.__qualname__}"
        try:
            source = textwrap.dedent(inspect.getsource(function.__code__))
        except OSError:
            return
        nodes = _definition(source, function)
        if nodes is None:
            return
        names = {
            **function.__globals__,
            **{
                name: cell.cell_contents
                for name, cell in zip(
                    function.__code__.co_freevars, function.__closure__ or (), strict=True
                )
                if _is_filled(cell)
            },
        }
        own = _bound(nodes)
        for node in nodes:
            yield from self._node(node, names, own, where)

    def _node(self, node: ast.AST, names: Mapping[str, Any], own: set[str], where: str) -> Found:
        for child in _parts(node):
            is_operation = isinstance(child, ast.BinOp | ast.AugAssign)
            if is_operation and type(child.op) in OPERATORS and not _is_literal(child):
                yield f"{where}:{child.lineno}", f"uses {OPERATORS[type(child.op)]}"
            elif isinstance(child, ast.Attribute):
                yield from self._attribute(child, names, own, where)
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                if child.id in own:
                    continue
                if child.id in names:
                    value = names[child.id]
                    if not isinstance(value, ModuleType):
                        yield from self._named(value, child, where)
                elif child.id not in BUILTINS:
                    yield f"{where}:{child.lineno}", f"reads {child.id}"

    def _named(self, value: Any, node: ast.Name, where: str) -> Found:
        module = getattr(value, "__module__", None) or ""
        if module.partition(".")[0] in MODULES and callable(value):
            if getattr(value, "__name__", "") not in MODULES[module.partition(".")[0]]:
                yield f"{where}:{node.lineno}", f"reads {module}.{node.id}"
        else:
            yield from self.visit(value)

    def _attribute(
        self, node: ast.Attribute, names: Mapping[str, Any], own: set[str], where: str
    ) -> Found:
        place = f"{where}:{node.lineno}"
        root = node.value
        if isinstance(root, ast.Name) and root.id not in own and root.id in names:
            value = names[root.id]
            if value is np:
                if node.attr not in NUMPY:
                    yield place, f"reads np.{node.attr}"
                return
            if isinstance(value, ModuleType):
                if value.__name__.startswith("foldline."):
                    yield from self.visit(getattr(value, node.attr))
                elif node.attr not in MODULES.get(value.__name__, ()):
                    yield place, f"reads {value.__name__}.{node.attr}"
                return
            if hasattr(value, node.attr) and not isinstance(value, np.ufunc):
                if inspect.isclass(value) or dataclasses.is_dataclass(value):
                    yield from self.visit(getattr(value, node.attr))
                    return
        if node.attr == "reduce" and _ufunc_name(root) in UNORDERED:
            yield place, f"reads np.{_ufunc_name(root)}.reduce"
        elif isinstance(root, ast.Name) and root.id == "self" and node.attr not in UNORDERED:
            return
        elif node.attr not in METHODS and not self._is_member(node.attr):
            yield place, f"reads .{node.attr}"

    def _is_member(self, name: str) -> bool:
        """Whether some class of the kernels has it, which is walked where it is named."""
        return name in _members()


@functools.cache
def _members() -> frozenset[str]:
    import sys

    found: set[str] = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("foldline."):
            for value in vars(module).values():
                if inspect.isclass(value) and value.__module__.startswith("foldline."):
                    found.update(vars(value))
                    found.update(getattr(value, "__annotations__", ()))
                    found.update(_own_attributes(value))
    return frozenset(found - {"sum", "mean", "prod", "dot", "var", "std", "cumsum", "cumprod"})


def _own_attributes(cls: type) -> Iterator[str]:
    """Attributes that the constructor of a class makes."""
    constructor = vars(cls).get("__init__")
    if isinstance(constructor, FunctionType) and "<" not in constructor.__code__.co_filename:
        tree = ast.parse(textwrap.dedent(inspect.getsource(constructor.__code__)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr


def _is_literal(node: ast.AST) -> bool:
    """A power of numbers that stand in the source, such as 2.0**-52."""
    return not any(isinstance(child, ast.Name | ast.Call) for child in ast.walk(node))


def _ufunc_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _definition(source: str, function: FunctionType) -> list[ast.AST] | None:
    """The body of the function, or the lambda, that the source holds."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = _part_of_a_table(source)
        if tree is None:
            return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            return [*node.body, *_hidden_arguments(node)]
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)] or None


def _part_of_a_table(source: str) -> ast.AST | None:
    """A line of a display, such as a lambda among the values of a dictionary."""
    text = source.strip().rstrip(",")
    for attempt in (f"{{{text}}}", f"({text})", f"[{text}]"):
        try:
            return ast.parse(attempt)
        except SyntaxError:
            continue
    return None


def _hidden_arguments(node: ast.FunctionDef) -> list[ast.AST]:
    """Arguments as nodes, so that their names count as bound."""
    return [node.args]


def _bound(nodes: list[ast.AST]) -> set[str]:
    """Names the function binds itself: arguments, targets, inner functions."""
    names: set[str] = set()
    for node in nodes:
        for child in ast.walk(node):
            if isinstance(child, ast.arg):
                names.add(child.arg)
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.add(child.id)
            elif isinstance(child, ast.FunctionDef):
                names.add(child.name)
            elif isinstance(child, ast.ExceptHandler) and child.name:
                names.add(child.name)
    return names


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """All below a node but annotations, decorators and defaults that are constants."""
    if isinstance(node, ast.arguments):
        for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
            yield from ast.walk(default)
        return
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        for name, value in ast.iter_fields(current):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            parts = value if isinstance(value, list) else [value]
            stack.extend(part for part in parts if isinstance(part, ast.AST))
