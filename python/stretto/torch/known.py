"""What is known before a step: constants, which PyTorch computes once, and the host's part, once per batch.

Masks, rotary tables, position ids, shifted labels: whatever no parameter has a part in. So none of the ops that make
them needs a rule.
"""

import dataclasses
import operator
import typing

import torch

from .export import Exported
from .rules import name_of

_asserts = "assert"


@dataclasses.dataclass
class Known:
    """A node's value for the example batch. `host`: it depends on the batch."""

    value: typing.Any
    host: bool
    rows_axes: tuple = ()
    counts_rows: bool = False  # a number that depends on how many rows there are


def is_check(node):
    return node.op == "call_function" and (_asserts in str(node.target) or "sym_constrain" in str(node.target))


def live_nodes(exported):
    """Those that the result needs; buffers that forward changes are no result."""
    live = {_result(exported)}
    for node in reversed(list(exported.nodes)):
        if node in live:
            live.update(node.all_input_nodes)
    return live


def _result(exported: Exported):
    output = next(node for node in exported.nodes if node.op == "output")
    specs = exported.program.graph_signature.output_specs
    return next(arg for arg, spec in zip(output.args[0], specs) if spec.kind.name == "USER_OUTPUT")


def result_of(exported):
    return _result(exported)


def attribute(exported, node):
    """A submodule or tensor that the graph holds."""
    value = exported.program.graph_module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def known_nodes(exported):
    """Every live node that no parameter has a part in, evaluated on the example batch."""
    live, known, device = live_nodes(exported), {}, set()
    for node in exported.nodes:
        if node not in live or node.op == "output" or is_check(node):
            continue
        if node in exported.state:
            kind, _, value = exported.state[node]
            if kind == "parameter":
                device.add(node)
            else:
                known[node] = Known(value, False)
        elif node in exported.inputs:
            known[node] = Known(exported.batch[exported.inputs[node]], True, tuple(exported.rows_axes.get(node, ())))
        elif node.op == "get_attr":
            known[node] = Known(attribute(exported, node), False)
        elif node.op == "call_function":
            if node in exported.rows_numbers and isinstance(node.meta.get("val"), (int, torch.SymInt)):
                value = node.meta["val"]
                known[node] = Known(value if isinstance(value, int) else int(value.node.hint), False, (), True)
            elif any(a in device for a in node.all_input_nodes):
                device.add(node)
            else:
                known[node] = _evaluated(exported, node, known)
    return known


def _evaluated(exported, node, known):
    of = [known[a] for a in node.all_input_nodes]
    value = _call(node, {a: known[a].value for a in node.all_input_nodes})
    counts = any(k.counts_rows for k in of) and not isinstance(value, torch.Tensor)
    host = any(k.host for k in of) and node.target is not torch.ops.aten.sym_size.int
    return Known(value, host, tuple(exported.rows_axes.get(node, ())), counts)


def _call(node, values):
    take = lambda x: values[x]
    with torch.no_grad():
        return function_of(node)(*torch.fx.map_arg(node.args, take), **torch.fx.map_arg(node.kwargs, take))


def function_of(node):
    """What computes it. A view of what lies otherwise in memory than it did in the export is a copy."""
    return torch.reshape if name_of(node.target) in ("aten.view", "aten._unsafe_view") else node.target


class Host:
    """The part of a step that PyTorch computes: the graph's inputs, of a batch."""

    def __init__(self, exported, known, wanted, leads, functions):
        """wanted: {name of an input: node}; leads: {name: the axis of its rows, if not the first}; functions: {name: what
        the input is of the node's value}"""
        self.wanted, self.leads, self.functions, self.inputs = wanted, leads, functions, exported.inputs
        self.fixed, self.order = {}, []
        needed = set(wanted.values())
        for node in reversed(list(exported.nodes)):
            if node not in needed:
                continue
            k = known[node]
            if k.host or k.rows_axes or k.counts_rows:
                self.order.append(node)
                needed.update(node.all_input_nodes)
            else:
                self.fixed[node] = k.value
        self.order.reverse()

    def __call__(self, batch):
        values = dict(self.fixed)
        for node in self.order:
            values[node] = batch[self.inputs[node]] if node in self.inputs else _call(node, values)
        as_input = {name: lambda value, lead=lead: value.movedim(lead, 0) for name, lead in self.leads.items()}
        as_input |= self.functions
        return {name: as_input.get(name, lambda value: value)(values[node]) for name, node in self.wanted.items()}


def is_getitem(node):
    return node.op == "call_function" and node.target is operator.getitem
