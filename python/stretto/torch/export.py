"""A module and a batch as PyTorch's exported graph: its nodes, and which of their axes are the batch's rows."""

import contextlib
import dataclasses
import io
import logging
import os
import pathlib
import re
import traceback
import typing

import torch
from torch.export import Dim

from .._library import Error, Fault

_prefix = "module."
_frame = re.compile(r'File "(.*?)", line (\d+)')
_ours = [str(pathlib.Path(of).parent) + os.sep for of in (torch.__file__, __file__)]


class _Wrapped(torch.nn.Module):
    """The loss, of positional arguments: the names of a batch are no part of a signature."""

    def __init__(self, module, names, loss):
        super().__init__()
        self.module, self.names, self.loss = module, names, loss

    def forward(self, *values):
        found = self.loss(self.module, dict(zip(self.names, values)))
        if not isinstance(found, torch.Tensor):
            what = f"is {type(found).__name__}, and no tensor"
            raise Error(*_one("loss", what, "give loss=lambda module, batch: ... that returns one number"))
        return found


def module_loss(module, batch):
    """What a module returns, when that is a loss or has one."""
    result = module(**batch)
    for found in (
        getattr(result, "loss", None),
        result.get("loss") if isinstance(result, dict) else None,
        result[0] if isinstance(result, tuple) and result else None,
        result,
    ):
        if isinstance(found, torch.Tensor):
            return found
    raise Error(
        *_one(
            "loss",
            f"the module returns {type(result).__name__}, which has no loss",
            "give loss=lambda module, batch: ...",
        )
    )


def _one(where, what, hint):
    return f"[{where}] {what}; hint: {hint}", [Fault(where, what, hint)], 1


@dataclasses.dataclass
class Exported:
    program: typing.Any
    module: typing.Any
    batch: dict
    rows: int
    inputs: dict  # node -> name in the batch
    state: dict  # node -> (kind, name in the module, value)
    rows_axes: dict  # node -> axes of its value whose size is the rows'
    rows_numbers: set  # nodes that are numbers which depend on how many rows there are
    any_rows: bool  # does the graph hold for other numbers of rows?
    other: typing.Any = None  # the program of one row more, where it does not

    @property
    def nodes(self):
        return self.program.graph.nodes


def shape_of(node):
    return tuple(_plain(size) for size in node.meta["val"].shape)


def _plain(size):
    return size if isinstance(size, int) else int(size.node.hint)


def dtype_of(node):
    return node.meta["val"].dtype


def module_path(node):
    """Of the innermost module that the node stands in."""
    stack = node.meta.get("nn_module_stack")
    return module_paths(node)[-1] if stack else ""


def module_paths(node):
    return [
        path.removeprefix("L['self'].").removeprefix(_prefix).removeprefix("module")
        for path, *_ in (node.meta.get("nn_module_stack") or {}).values()
    ]


def source_line(node):
    """The line of the user's model: the innermost that is not PyTorch's own."""
    for file, line in reversed(_frame.findall(node.meta.get("stack_trace") or "")):
        if not file.startswith(tuple(_ours)):
            return f"{pathlib.Path(file).name}:{line}"
    return ""


@contextlib.contextmanager
def _quiet():
    """PyTorch prints graphs and warnings about exports that fail; what fails is said once, as an Error."""
    said, disabled = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(said):
            yield
    finally:
        logging.disable(disabled)


def _programs(wrapped, values):
    """The exported program, and, for a module that allows no symbol for rows, a second one with one row more."""
    rows = Dim("batch")
    try:
        return (
            torch.export.export(
                wrapped, values, dynamic_shapes={"values": tuple({0: rows} for _ in values)}, strict=False
            ),
            None,
        )
    except Error:
        raise
    except Exception as first:  # the reasons are many, and of many types
        try:
            more = tuple(torch.cat([v, v[:1]]) for v in values)
            return (
                torch.export.export(wrapped, values, strict=False),
                torch.export.export(wrapped, more, strict=False),
            )
        except Exception as second:
            raise _export_error(first, second) from second


def _lines_of_user(error):
    """file:line of the calls that led to it, but for PyTorch's own."""
    while error is not None:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if not frame.filename.startswith(("<", *_ours)):
                yield f"{pathlib.Path(frame.filename).name}:{frame.lineno}"
        error = error.__cause__ or error.__context__


def _export_error(first, second):
    text = str(second).strip() or str(first)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    what = f"torch.export does not take this module: {lines[0] if lines else type(second).__name__}"
    place = next(_lines_of_user(second), None) or next(_lines_of_user(first), None)
    hint = "try module(**batch): the batch has the arguments of its forward, and what fails there fails here"
    if any(word in text for word in ("data-dependent", "unbacked", "u0")):
        hint = "sizes and branches must not depend on values: no x[mask], nonzero, .item(), or Python `if` on a tensor"
    return Error(*_one("from_torch", what + (f" ({place})" if place else ""), hint))


def _functional(program):
    """Without ops that write into their operands. Most modules have none, and PyTorch takes long for this."""
    buffers = set(program.graph_signature.inputs_to_buffers)
    writes = any(
        node.op == "call_function"
        and hasattr(node.target, "_schema")
        and node.target._schema.is_mutable
        and node.args[0].name not in buffers
        for node in program.graph.nodes
    )
    return program.run_decompositions({}) if writes else program


def exported(module, batch, loss=None):
    values = tuple(value.clone() for value in batch.values())  # one tensor under two names would be one input
    wrapped = _Wrapped(module, list(batch), loss or module_loss)
    with _quiet():
        program, other = _programs(wrapped, values)
        program = _functional(program)
        other = _functional(other) if other else None
    return _with_places(program, other, module, batch)


def written_out(of, ops):
    """The graph with these ops written in others, as PyTorch does it; None: it cannot do that with any of them."""
    known = torch.export.default_decompositions()
    table = {op: known[op] for op in ops if isinstance(op, torch._ops.OpOverload) and op in known}
    if not table:
        return None
    with _quiet():
        programs = [p and p.run_decompositions(table) for p in (of.program, of.other)]
    return _with_places(*programs, of.module, of.batch)


def _with_places(program, other, module, batch):
    state_of = {**program.state_dict, **program.constants}
    inputs, state = {}, {}
    names = iter(batch)
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        kind = spec.kind.name.lower()
        if kind == "user_input":
            inputs[node] = next(names)
        else:
            state[node] = (kind, spec.target.removeprefix(_prefix), state_of[spec.target])
    axes, numbers = _rows(program, other)
    rows = len(next(iter(batch.values())))
    return Exported(program, module, batch, rows, inputs, state, axes, numbers, other is None, other)


def _rows(program, other):
    axes, numbers = {}, set()
    pairs = zip(program.graph.nodes, other.graph.nodes if other else program.graph.nodes)
    for node, second in pairs:
        value, more = node.meta.get("val"), second.meta.get("val")
        if isinstance(value, torch.Tensor):
            axes[node] = [
                i
                for i, (a, b) in enumerate(zip(value.shape, more.shape))
                if (a != b if other else not isinstance(a, int))
            ]
        elif isinstance(value, (torch.SymInt, torch.SymFloat)) or other and isinstance(value, int) and value != more:
            numbers.add(node)
    return axes, numbers
