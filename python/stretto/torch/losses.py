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


def _scalar(g, node):
    x = g.made[node]
    return isinstance(x, Tensor) and x.known is None and math.prod(x.shape) == 1


def _whole_reduction(g, node):
    """A mean or a sum over everything, rows included: its operand."""
    name = name_of(node.target)
    if name not in ("aten.mean", "aten.sum") or not node.args:
        return None
    x = g.made[node.args[0]]
    rows = any(a.rows for axis in x.axes for a in flat(axis))
    return (name, x) if rows and math.prod(shape_of(node)) == 1 else None


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


def _entropy_sum(b, operands, attributes):
    """The sum of the labels' entropies, written out, over the number of rows."""
    v, labels = operands
    over = attributes["over"]
    top = b.reduce("max", v, [over])
    top = b.node("stop_gradient", [top], top.dims)
    c = b.op("sub", v, top)
    logs = b.op("sub", c, b.op("log", b.reduce("sum", b.op("exp", c), [over])))
    dims = [d for d in v.dims if d != over]
    counts = b.op("not_equal", labels, float(attributes["ignore"]))
    safe = b.op("where", counts, labels, 0.0)
    each = b.op("where", counts, b.node("pick", [logs, safe], dims, over=[over], out=dims), 0.0)
    return "ratio", [b.op("neg", b.reduce("sum", each, list(each.dims))), b.rows_count()], {}
