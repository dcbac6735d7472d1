"""Losses: the terms that a step is summed from."""

from .atoms import flat, hint, unify
from .losses import entropies
from .rules import Refusal, rule


class Term:
    """build(b): (kind, operands, attributes) of a term of the file."""

    def __init__(self, build, reduction=1):
        self.build, self.reduction = build, reduction


def _term(g, build, reduction):
    y = g.new([], lambda b: _inside(), shape=())
    y.term = Term(build, reduction)
    return y


def _inside():
    raise Refusal(
        "a loss goes into something that is no sum of losses times numbers",
        "return a sum of losses, each times a number",
    )


@rule("aten.cross_entropy_loss")
def cross_entropy(g, logits, labels, weight=None, reduction=1, ignore=-100, smoothing=0.0):
    if weight is not None or smoothing:
        raise Refusal("cross entropy with weights or smoothing", "leave them out, or write the loss with log_softmax")
    if labels.float():
        raise Refusal("cross entropy of probabilities", "give the numbers of classes, or write it with log_softmax")
    classes = 1 if len(logits.axes) > 1 else 0
    rows = [axis for i, axis in enumerate(logits.axes) if i != classes]
    for p, q in zip(labels.axes, rows):
        unify(p, q)
    over = logits.axes[classes]
    hint(over, "vocab" if logits.shape[classes] in g.tables else "classes", 2)

    def operands(b):
        v, name = b.get(logits), None
        v = b.broadcast(v, [d for axis in rows for d in b.names_of(axis)])
        v, name = (v, b.names_of(over)[0]) if len(flat(over)) == 1 else b.joined(v, flat(over))
        return [v, b.broadcast(b.get(labels, rows), [d for d in v.dims if d != name])], name

    def build(b):
        both, name = operands(b)
        return "cross_entropy", both, {"over": name, "ignore": ignore}

    def each(b):
        both, name = operands(b)
        return entropies(b, *both, name, ignore)

    return _term(g, build, reduction) if reduction else g.new(rows, each)


def _mean_of(g, make, x, y, reduction):
    both = g.pointwise(make, x, y)
    if reduction == 0:
        return both
    return _term(g, lambda b: ("mean", [both.build(b)], {}), reduction)


@rule("aten.mse_loss")
def mse_loss(g, x, y, reduction=1):
    return _mean_of(g, lambda b, p, q: b.op("square", b.op("sub", p, q)), x, y, reduction)


@rule("aten.l1_loss")
def l1_loss(g, x, y, reduction=1):
    return _mean_of(g, lambda b, p, q: b.op("abs", b.op("sub", p, q)), x, y, reduction)


@rule("aten.binary_cross_entropy_with_logits")
def bce_with_logits(g, x, y, weight=None, positive=None, reduction=1):
    if weight is not None or positive is not None:
        raise Refusal("binary cross entropy with weights", "write it with softplus")

    def make(b, p, q):  # max(x, 0) - x y + log(1 + exp(-|x|))
        small = b.op("log", b.op("add", b.op("exp", b.op("neg", b.op("abs", p))), 1.0))
        return b.op("add", b.op("sub", b.op("relu", p), b.op("mul", p, q)), small)

    return _mean_of(g, make, x, y, reduction)
