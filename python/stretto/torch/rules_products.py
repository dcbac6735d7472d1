"""Matrix products, embeddings, norms, and rows that computed numbers choose."""

import torch

from . import atoms
from .atoms import flat, hint, unify
from .rules import Refusal, rule


def _layer(g, x, weight, out, into):
    """x times a weight, of which one axis is made and one is summed."""
    g.layers.append((weight, out, into))
    return g.product(x, weight, [(x.axes[-1], weight.axes[into])], list(x.axes[:-1]) + [weight.axes[out]])


@rule("aten.linear")
def linear(g, x, weight, bias=None):
    y = _layer(g, x, weight, 0, 1)
    if bias is not None:
        y = g._with_bias(y, bias)
    y.linear = (x, weight, bias)
    return y


@rule("aten.addmm")
def addmm(g, bias, x, weight, beta=1, alpha=1):
    if beta != 1 or alpha != 1:
        raise Refusal("addmm with beta or alpha", "multiply before")
    return g._with_bias(_layer(g, x, weight, 1, 0), bias)


@rule("aten.matmul", "aten.mm", "aten.bmm")
def matmul(g, a, b):
    if a.rows_of:
        return chosen_product(g, a, b)
    if {id(axis) for axis in a.axes} & {id(axis) for axis in b.axes}:  # x times its own view: axes of each by themselves
        b = g.same(b, [list(axis) for axis in b.axes], b.shape)
    if len(a.axes) == 1 or len(b.axes) == 1:
        return _with_vector(g, a, b)
    if len(a.axes) > 2 and len(b.axes) == 2 and b.parameter:
        return _layer(g, a, b, 1, 0)
    rank = max(len(a.axes), len(b.axes)) - 2
    of_a = [[]] * (rank + 2 - len(a.axes)) + list(a.axes[:-2])
    of_b = [[]] * (rank + 2 - len(b.axes)) + list(b.axes[:-2])
    shared = [(p, q) for p, q in zip(of_a, of_b) if flat(p) and flat(q)]
    batch = [p if flat(p) else q for p, q in zip(of_a, of_b)]
    if a.shares and rank > 1:  # attention by hand
        hint(b.axes[-1], "head", 1)
        hint(a.axes[-2], "seq", 2)
        g.attended.append(a.axes[-3])
    return g.product(a, b, [(a.axes[-1], b.axes[-2])], batch + [a.axes[-2], b.axes[-1]], shared)


@rule("aten.mv", "aten.dot")
def _with_vector(g, a, b):
    if len(b.axes) == 1:
        return g.product(a, b, [(a.axes[-1], b.axes[0])], list(a.axes[:-1]))
    return g.product(a, b, [(a.axes[0], b.axes[-2])], list(b.axes[:-2]) + [b.axes[-1]])


@rule("aten.baddbmm")
def baddbmm(g, c, a, b, beta=1, alpha=1):
    if beta != 1 or alpha != 1:
        raise Refusal("baddbmm with beta or alpha", "multiply before")
    y = matmul(g, a, b)
    return g.pointwise(lambda make, p, q: make.op("add", p, q), y, c)


@rule("aten.embedding")
def embedding(g, table, ids, padding=-1, *_, **__):
    if ids.float():
        raise Refusal("an embedding of numbers that are not whole", "give ids")
    hint(table.axes[0], "position" if ids.constant else "vocab", 1)
    if len(table.axes) == 2:
        hint(table.axes[1], "model", 3)
    if not ids.constant:
        g.tables.add(table.shape[0])
    y = _looked_up(g, table, ids)
    if padding < 0 or table.known or table.parameter and not table.leaf.requires_grad:
        return y

    def build(b):  # nothing is learned for the row of padding
        v, which = b.get(y), b.get(ids, ids.axes)
        return b.op("where", b.op("not_equal", which, float(padding)), v, b.node("stop_gradient", [v], v.dims))

    return g.new(y.axes, build, register=False)


def _run_of(ids):
    """(axis, first) of constant numbers that count up along one axis and are the same along all others, else None."""
    if not ids.constant:
        return None
    value, axes = ids.known.value, []
    for i, size in enumerate(value.shape):
        if size > 1 and bool((value == value.narrow(i, 0, 1)).all()):
            value = value.narrow(i, 0, 1)
        elif size > 1:
            axes.append(i)
    places = value.reshape(-1)
    if len(axes) != 1 or not torch.equal(places, places[0] + torch.arange(len(places))):
        return None
    return axes[0], int(places[0])


def _looked_up(g, table, ids):
    row, run = table.axes[0], _run_of(ids)

    def build(b):
        rows = b.get(table)
        if run is not None and len(flat(row)) == 1 and len(flat(ids.axes[run[0]])) == 1:
            return b.rows_from(rows, b.names_of(row)[0], b.names_of(ids.axes[run[0]])[0], run[1])
        which = b.get(ids)
        name = b.names_of(row)[0]
        if len(flat(row)) != 1:
            rows, name = b.joined(rows, flat(row))
        dims = which.dims + tuple(d for d in rows.dims if d != name)
        return b.node("embedding", [rows, which], dims, vocab=name)

    return g.new(list(ids.axes) + list(table.axes[1:]), build)


@rule("aten.index_select")
def index_select(g, x, dim, ids):
    if dim % len(x.axes) != 0:
        raise Refusal("index_select along an axis that is not the first", "transpose before and after")
    return _looked_up(g, x, ids)


@rule("aten.gather")
def gather(g, x, dim, ids, **_):
    dim %= len(x.axes)
    over = x.axes[dim]
    out = []
    for j, (p, q) in enumerate(zip(x.axes, ids.axes)):
        if j != dim:
            if x.shape[j] != ids.shape[j]:
                raise Refusal("gather with fewer rows than its operand", "slice the operand first")
            unify(q, p)
        out.append(q if j == dim else p)

    def build(b):
        v, which = b.get(x), b.get(ids, out)
        names = b.names_of(over)
        v = b.broadcast(v, [*names, *which.dims])
        dims = tuple(d for d in v.dims if d not in names) + tuple(d for d in which.dims if d not in v.dims)
        return b.node("pick", [v, which], dims, over=names, out=list(dims))

    return g.new(out, build)


_most_mapped = 1 << 22  # numbers of a matrix that the program holds


def mapped(g, x, dim, matrix):
    """y[.. i ..] = sum over j of matrix[i, j] x[.. j ..]: a constant matrix along one axis."""
    dim %= len(x.axes)
    if matrix.numel() > _most_mapped:
        shown = " x ".join(map(str, matrix.shape))
        raise Refusal(f"a sum along an axis as a matrix of {shown}", "do it on the host, or over shorter axes")
    axis = x.axes[dim]
    new = atoms.twin(axis) if matrix.shape[0] == matrix.shape[1] else atoms.axis(matrix.shape[0])
    g.registered([new, axis])
    out = [new if i == dim else a for i, a in enumerate(x.axes)]

    def build(b):
        v, name = b.joined(b.get(x), flat(axis))
        table = b.values([b.whole(new), name] if new else [name], matrix.numpy() if new else matrix[0].numpy())
        return b.unfold(b.product(v, table, [name]), new)

    return g.new(out, build, [matrix.shape[0] if i == dim else s for i, s in enumerate(x.shape)])


def _not_of_rows(x, dims):
    if any(a.rows for d in dims for a in flat(x.axes[d])):
        raise Refusal("rows of the batch are put in another order, or summed one after the other", "do it on the host")


@rule("aten.flip")
def flip(g, x, dims):
    _not_of_rows(x, dims)
    for d in dims:
        x = mapped(g, x, d, torch.eye(x.shape[d], dtype=torch.float64).flip(0))
    return x


@rule("aten.cumsum")
def cumsum(g, x, dim, dtype=None):
    _not_of_rows(x, [dim])
    return mapped(g, x, dim, torch.ones(x.shape[dim], x.shape[dim], dtype=torch.float64).tril())


# Norms.
def normalised(b, v, over, eps):
    """(v - mean) / sqrt(variance + eps), written out."""
    c = b.op("sub", v, b.reduce("mean", v, over))
    r = b.op("rsqrt", b.op("add", b.reduce("mean", b.op("square", c), over), float(eps)))
    return b.op("mul", c, r)


def scaled(b, y, weight, bias, axes):
    if weight is not None:
        y = b.op("mul", y, b.get(weight, axes))
    return y if bias is None else b.op("add", y, b.get(bias, axes))


def _line_up(x, count, *vectors):
    for vector in vectors:
        if vector is not None:
            for p, q in zip(vector.axes, x.axes[-count:]):
                unify(p, q)


@rule("aten.layer_norm")
def layer_norm(g, x, shape, weight=None, bias=None, eps=1e-5, *_):
    axes = list(x.axes[-len(shape) :])
    _line_up(x, len(shape), weight, bias)

    def build(b):
        v, own = b.get(x), [a for axis in axes for a in flat(axis)]
        if len(own) == 1 and weight is not None and bias is not None:
            return b.node(
                "layer_norm",
                [b.broadcast(v, b.names_of(own)), b.get(weight, axes), b.get(bias, axes)],
                b.broadcast(v, b.names_of(own)).dims,
                over=b.name(own[0]),
                eps=float(eps),
            )
        return scaled(b, normalised(b, v, own, eps), weight, bias, axes)

    return g.new(x.axes, build, register=False)


@rule("aten.rms_norm")
def rms_norm(g, x, shape, weight=None, eps=None):
    axes = list(x.axes[-len(shape) :])
    _line_up(x, len(shape), weight)
    eps = 1.1920928955078125e-07 if eps is None else eps

    def build(b):
        v, own = b.get(x), [a for axis in axes for a in flat(axis)]
        if len(own) == 1 and weight is not None:
            v = b.broadcast(v, b.names_of(own))
            return b.node("rms_norm", [v, b.get(weight, axes)], v.dims, over=b.name(own[0]), eps=float(eps))
        r = b.op("rsqrt", b.op("add", b.reduce("mean", b.op("square", v), own), float(eps)))
        return scaled(b, b.op("mul", v, r), weight, None, axes)

    return g.new(x.axes, build, register=False)


# Rows that are chosen by computed numbers: experts.
@rule("aten.topk")
def topk(g, x, k, dim=-1, largest=True, sorted=True):
    if not largest:
        raise Refusal("topk of the smallest", "take topk of -x")
    dim %= len(x.axes)
    if len(flat(x.axes[dim])) != 1:
        raise Refusal("topk over several dims", "make them one axis from the start")
    hint(x.axes[dim], "experts_w", 0)  # every token sees all of them
    new = atoms.axis(k)
    hint(new, "choice", 1)
    axis = x.axes[dim]
    out = list(x.axes[:dim]) + [new] + list(x.axes[dim + 1 :])

    def which(b):
        v, over = b.get(x), b.name(flat(axis)[0])
        choice = b.name(flat(new)[0]) if new else b.names.one()
        made = b.node("top_k", [v], [d for d in v.dims if d != over] + [choice], over=over, choice=choice)
        return made if new else b.index(made, choice, 0)

    def values(b):
        v, w = b.get(x), which(b)
        return b.node("pick", [v, w], w.dims, over=[b.name(flat(axis)[0])], out=list(w.dims))

    chosen = g.new(list(out), which, register=False, shape=[atoms.size_of(a) for a in out])
    chosen.dtype = torch.int64
    return [g.new(out, values, shape=chosen.shape), chosen]


@rule("aten.index")
def index(g, x, places):
    given = [(i, p) for i, p in enumerate(places) if p is not None]
    if len(given) == 2 and [i for i, _ in given] == [0, 1] and all(p.known for _, p in given):
        return _picked(g, x, given[0][1], given[1][1])
    if len(given) != 1 or given[0][0] != 0 or given[0][1].float():
        raise Refusal("an index of several tensors", "x[i] takes rows along the first axis; x[arange, j] one per row")
    ids = given[0][1]
    if ids.dtype == torch.bool:
        raise Refusal("x[mask]: a size that depends on values", "use torch.where(mask, x, 0) and keep the size")
    if x.parameter and ids.known is None:
        hint(x.axes[0], "experts", 0)
        y = g.new(list(ids.axes) + list(x.axes[1:]), _outside_of_product)
        y.rows_of = (x, ids)
        return y
    if x.parameter and not ids.constant:
        return embedding(g, x, ids)
    return _looked_up(g, x, ids)


@rule("aten.item", "aten._local_scalar_dense", "aten.nonzero", "aten.masked_select", "aten._unique2", "aten.bincount")
def of_values(g, *_, **__):
    raise Refusal("a number or a size that depends on values", "keep it a tensor of a size that is known before")


def _outside_of_product(b):
    raise Refusal(
        "rows of a parameter, chosen by computed numbers, go into something that is no product",
        "experts are known as weight[index] in bmm",
    )


def _picked(g, x, rows, ids):
    """x[arange(rows), ids]: of every row the element that it names."""
    value = rows.known.value
    if value.dim() != 1 or len(value) != x.shape[0] or not torch.equal(value.cpu(), torch.arange(len(value))):
        raise Refusal("an index with two tensors", "x[arange(rows), places] is known: one place per row")
    unify(ids.axes[0], x.axes[0])
    over = x.axes[1]

    def build(b):
        v, which = b.get(x), b.get(ids, [x.axes[0]])
        names = b.names_of(over)
        dims = [d for d in v.dims if d not in names]
        return b.node("pick", [v, which], dims, over=names, out=dims)

    return g.new([x.axes[0]] + list(x.axes[2:]), build)


def chosen_product(g, a, x):
    """weight[which] times x, row by row."""
    weight, which = a.rows_of
    unify(a.axes[2], x.axes[1])
    unify(which.axes[0], x.axes[0])
    weight.experts = True
    g.layers.append((weight, 1, 2))

    def build(b):
        v, m = b.get(x), b.get(weight, [weight.axes[0], weight.axes[1], x.axes[1]])
        i = b.get(which, [x.axes[0]])
        dims = list(i.dims) + b.names_of(weight.axes[1])
        return b.node("choose", [v, m, i], dims, expert=b.name(flat(weight.axes[0])[0]), out=dims)

    return g.new([x.axes[0], weight.axes[1], x.axes[2]], build)


@rule("aten._grouped_mm")
def grouped_mm(g, *_, **__):
    raise Refusal("experts by grouped_mm", 'use experts_implementation="batched_mm" in the config')
