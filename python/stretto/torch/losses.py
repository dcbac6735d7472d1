"""The loss as a sum of terms: what the result is made of, walked back through + and numbers."""

import dataclasses
import math

import torch

from .atoms import flat
from .export import shape_of
from .known import result_of
from .nodes import Builder
from .rules import name_of
from .tensors import RowsCount, Tensor

_passed = ("aten.to", "aten._to_copy", "aten.view", "aten.reshape", "aten.clone", "aten.squeeze", "aten.alias")


@dataclasses.dataclass
class Term:
    """weight times what the node is."""

    node: object
    weight: float
    rows: int = 0  # times the number of rows to this power
    count: object = None  # what the sum is divided by: the sum of this tensor, which comes with the batch


def terms_of(g, exported):
    """The terms, and all nodes that stand behind them."""
    terms, behind = [], set()

    def number(x):
        if isinstance(x, torch.fx.Node):
            x = g.made[x]
        if isinstance(x, Tensor):
            x = g.number(x)
        return x

    def walk(node, weight, rows):
        name = name_of(node.target)
        args = node.args
        if getattr(g.made[node], "term", None):
            terms.append(Term(node, weight, rows))
        elif (
            name in ("aten.add", "aten.add_", "aten.sub")
            and not node.kwargs
            and all(isinstance(a, torch.fx.Node) and _scalar(g, a) for a in args)
        ):
            walk(args[0], weight, rows)
            walk(args[1], -weight if name == "aten.sub" else weight, rows)
        elif name in ("aten.mul", "aten.mul_") and any(number(a) is not None for a in args):
            at = 1 if number(args[1]) is not None else 0
            factor = number(args[at])
            walk(args[1 - at], weight * factor, rows + isinstance(factor, RowsCount))
        elif name in ("aten.div", "aten.div_") and number(args[1]) is not None:
            factor = number(args[1])
            walk(args[0], weight / factor, rows - isinstance(factor, RowsCount))
        elif name in ("aten.div", "aten.div_") and (count := _count_of(g, args[1])) and _sum_in(g, args[0]):
            terms.append(Term(_sum_in(g, args[0]), weight, rows, count))
        elif name == "aten.neg":
            walk(args[0], -weight, rows)
        elif name in _passed:
            walk(args[0], weight, rows)
        else:
            terms.append(Term(node, weight, rows))
            return
        behind.add(node)

    walk(result_of(exported), 1.0, 0)
    return terms, behind


def _peeled(node, through):
    while isinstance(node, torch.fx.Node) and node.op == "call_function" and name_of(node.target) in through:
        node = node.args[0]
    return node


def _count_of(g, node):
    """A number that is the sum of a tensor of the batch, all rows together, at least one."""
    node = _peeled(node, (*_passed, "aten.clamp", "aten.clamp_min"))
    whole = _whole_sum(g, node)
    return whole if whole is not None and whole.known is not None and whole.known.host else None


def _sum_in(g, node):
    """The sum over all rows that stands there, behind what changes no number."""
    node = _peeled(node, _passed)
    whole = _whole_sum(g, node)
    return node if whole is not None and whole.known is None else None


def _whole_sum(g, node):
    """The operand of a sum over everything."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function" or name_of(node.target) != "aten.sum":
        return None
    x = g.made.get(node.args[0])
    return x if isinstance(x, Tensor) and math.prod(shape_of(node)) == 1 and _has_rows(x) else None


def _has_rows(x):
    return any(a.rows for axis in x.axes for a in flat(axis))


def _scalar(g, node):
    x = g.made[node]
    return isinstance(x, Tensor) and x.known is None and math.prod(x.shape) == 1


def _whole_reduction(g, node):
    """A mean or a sum over everything, rows included: its operand."""
    name = name_of(node.target)
    if name not in ("aten.mean", "aten.sum") or not node.args:
        return None
    x = g.made[node.args[0]]
    return (name, x) if _has_rows(x) and math.prod(shape_of(node)) == 1 else None


def is_sum_of_rows(g, node):
    """Is it a term by itself, whatever stands in its rows?"""
    return _whole_reduction(g, node) is not None


def add_terms(b: Builder, g, terms):
    """Terms of the file. A sum over rows is a term by itself, as a mean over them times their number."""
    loss = []
    for i, term in enumerate(terms):
        x = g.made[term.node]
        at = len(terms) > 1 and f"_{i + 1}" or ""
        weight = term.weight
        if x.term:
            kind, operands, attributes = x.term.build(b)
            if x.term.reduction == 2:  # a sum: what is averaged, times how many there are
                raise_sum = 1
                for d in operands[0].dims:
                    if d != attributes.get("over"):
                        raise_sum *= b.names.size(d)
                if kind == "cross_entropy":
                    kind, operands, attributes = _entropy_sum(b, operands, attributes)
                    raise_sum = b.names.size("batch")
                weight *= raise_sum
        elif term.count is not None:
            kind, operands, attributes = "ratio", [_total(b, g.made[term.node.args[0]]), _total(b, term.count)], {}
        elif (whole := _whole_reduction(g, term.node)) is not None:
            name, operand = whole
            v = b.get(operand)
            v = b.broadcast(v, [b.name(a) for axis in operand.axes for a in flat(axis) if a.rows])
            if name == "aten.mean":
                kind, operands, attributes = "mean", [v], {}
            else:
                kind, operands, attributes = "ratio", [b.reduce("sum", v, list(v.dims)), b.rows_count()], {}
                lacking = [a for axis in operand.axes for a in flat(axis) if b.name(a) not in v.dims]
                weight *= b.names.size("batch") * math.prod(a.size for a in lacking)
        else:
            v = b.get(x)
            kind, operands, attributes = "ratio", [v, b.values([], [1.0])], {}
        loss.append(
            {
                "kind": kind,
                "in": [v.index for v in operands],
                **attributes,
                "weight": float(weight),
                "name": (kind if kind == "cross_entropy" else "loss") + at,
            }
        )
    return loss


def _total(b, x):
    """The sum of all elements, rows included."""
    v = b.get(x)
    v = v if x.float() else b.node("cast", [v], v.dims, to="run")
    v = b.broadcast(v, [b.name(a) for axis in x.axes for a in flat(axis) if a.rows])
    return b.reduce("sum", v, [a for axis in x.axes for a in flat(axis)])


def entropies(b, v, labels, over, ignore):
    """What each label costs: -log softmax, and nothing where it is ignored."""
    top = b.reduce("max", v, [over])
    top = b.node("stop_gradient", [top], top.dims)
    c = b.op("sub", v, top)
    logs = b.op("sub", c, b.op("log", b.reduce("sum", b.op("exp", c), [over])))
    dims = [d for d in v.dims if d != over]
    counts = b.op("not_equal", labels, float(ignore))
    safe = b.op("where", counts, labels, 0.0)
    return b.op("neg", b.op("where", counts, b.node("pick", [logs, safe], dims, over=[over], out=dims), 0.0))


def _entropy_sum(b, operands, attributes):
    """The sum of the labels' entropies, over the number of rows."""
    each = entropies(b, *operands, attributes["over"], attributes["ignore"])
    return "ratio", [b.reduce("sum", each, list(each.dims)), b.rows_count()], {}
