"""Reads the exported graph: every node's rule is called, all refusals are kept together."""

import collections

import torch

from . import atoms
from .export import module_path, shape_of, source_line
from .known import is_check, is_getitem, live_nodes, result_of
from .rules import Refusal, name_of, rule_of
from .tensors import Graph, RowsCount, Tensor


class Refused(Exception):
    """All that cannot be imported: [(where, what, hint)]."""

    def __init__(self, faults, ops=()):
        super().__init__(str(faults))
        self.faults, self.ops = faults, ops  # those that might be known written in others


def place_of(node):
    path, line = module_path(node), source_line(node)
    return " ".join([f"in {path}" if path else "", f"({line})" if line else ""]).strip()


class Faults:
    """By what is wrong: the places where it is."""

    def __init__(self):
        self._places, self._ops = collections.OrderedDict(), set()

    def add(self, node, what, hint, op=None):
        self._places.setdefault((what, hint), []).append(place_of(node))
        if op is not None:
            self._ops.add(op)

    def check(self):
        if not self._places:
            return
        faults = []
        for (what, hint), places in self._places.items():
            more = f", and at {len(places) - 1} more places" if len(places) > 1 else ""
            faults.append(("from_torch", f"{what} {places[0]}{more}".strip(), hint))
        raise Refused(faults, self._ops)


def _lifted(g, node, known):
    """A known value as an operand; its axes are made when a rule asks for them."""
    value = known.value
    if not isinstance(value, torch.Tensor):
        return RowsCount(value) if known.counts_rows else value

    def axes():
        rows = g.exported.rows  # an axis of rows * positions learns its factors from what it meets
        return g.registered([atoms.axis(s, rows=i in known.rows_axes and s == rows) for i, s in enumerate(value.shape)])

    x = Tensor(value.shape, value.dtype, axes, lambda b: b.known(x), known)
    x.node = node
    return x


def _parameter(g, node, name, value):
    axes = g.registered([atoms.axis(s) for s in value.shape])
    x = Tensor(value.shape, value.dtype, axes, lambda b: b.parameter(name, x))
    x.parameter, x.node, x.leaf = name, node, value
    g.parameters[name] = x
    return x


def _rule_for(node):
    if is_getitem(node):
        return lambda g, x, i: x[i]
    return rule_of(name_of(node.target))


def _unknown(name):
    return (f"{name} is not known", f'write it with other ops, or give a rule: @stretto.torch.rule("{name}")')


def _read(g, node, faults):
    """The node's value by its rule; None: it is refused, or what it reads is."""
    operands = {a: g.made.get(a) for a in node.all_input_nodes}
    if any(v is None for v in operands.values()):
        return None
    apply = _rule_for(node)
    if apply is None:
        faults.add(node, *_unknown(name_of(node.target)), node.target)
        return None
    g.node = node
    take = lambda x: operands[x]
    name = name_of(node.target)
    try:
        made = apply(g, *torch.fx.map_arg(node.args, take), **torch.fx.map_arg(node.kwargs, take))
    except Refusal as e:
        faults.add(node, f"{name}: {e.what}", e.hint, node.target)
    except atoms.RowsAreCut:
        faults.add(
            node,
            f"{name} cuts or joins the batch's rows: {_shapes(node)}",
            "keep the batch an axis of its own; to look at parts of rows, view and slice the other axes",
        )
    except atoms.NoCommonCut:
        faults.add(
            node,
            f"{name} cuts an axis in two ways that have no common factors: {_shapes(node)}",
            "use reshape with the same factors on both sides",
            node.target,
        )
    except TypeError as e:
        faults.add(
            node,
            f"{name} is used in a way that its rule does not know ({e})",
            f'write it in another way, or give a rule: @stretto.torch.rule("{name}")',
        )
    else:
        for y in made if isinstance(made, list) else [made]:
            if isinstance(y, Tensor) and y.node is None:
                y.node = node
        return made
    return None


def _shapes(node):
    of = [shape_of(a) for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)]
    show = lambda s: " x ".join(map(str, s))
    value = node.meta.get("val")
    return " and ".join(map(show, of)) + (f" to {show(shape_of(node))}" if isinstance(value, torch.Tensor) else "")


def inferred(exported, known):
    """The graph with a tensor for every node that the loss needs. All refusals at once, as Refused."""
    g, faults = Graph(exported), Faults()
    live = live_nodes(exported)
    for node in exported.nodes:
        if node not in live or node.op == "output" or is_check(node):
            continue
        if node in known:
            g.made[node] = _lifted(g, node, known[node])
        elif node in exported.state:
            _, name, value = exported.state[node]
            g.made[node] = _parameter(g, node, name, value)
        elif node.op == "call_function":
            g.made[node] = _read(g, node, faults)
    faults.check()
    loss = result_of(exported)
    if loss in known:
        faults.add(loss, "no parameter has a part in the loss", "give a module whose loss depends on its parameters")
    elif shape_of(loss) not in ((), (1,)):
        faults.add(
            loss, f"the loss is {' x '.join(map(str, shape_of(loss)))} numbers", "return one number: its mean or sum"
        )
    faults.check()
    return g
