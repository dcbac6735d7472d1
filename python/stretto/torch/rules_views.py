"""Views, and parts of axes. Most make no node: axes are other lists of atoms."""

from . import atoms
from .atoms import flat, unify
from .rules import Refusal, rule
from .tensors import Tensor


def _plain(x, otherwise):
    return otherwise if x is None else int(x)


@rule(
    "aten.view",
    "aten.reshape",
    "aten._unsafe_view",
    "aten.flatten",
    "aten.unflatten",
    "aten.unsqueeze",
    "aten.squeeze",
    "aten._reshape_alias",
    "aten.ravel",
)
def reshape(g, x, *_, **__):
    try:
        return g.same(x, g.registered(atoms.regroup(x.axes, g.shape)))
    except atoms.NoCommonCut:
        return _refolded(g, x, g.shape)


def _refolded(g, x, shape):
    """Axes that are cut in a way which no factors of their atoms give: other atoms, of the same elements."""
    out, old = [], list(x.axes)
    i = j = 0
    pieces = []  # (axes of x, axes of the result) of equal sizes
    while i < len(x.shape) or j < len(shape):
        a, b, m, n = i, j, 1, 1
        while True:
            if m == n and (i > a or j > b):
                break
            if m <= n and i < len(x.shape) and (m < n or i == a):
                m, i = m * x.shape[i], i + 1
            elif j < len(shape):
                n, j = n * shape[j], j + 1
            else:
                break
        pieces.append((old[a:i], shape[b:j]))
    plan = []
    for axes, sizes in pieces:
        own = [atom for axis in axes for atom in flat(axis)]
        try:
            out += atoms.regroup([own], sizes)
        except atoms.NoCommonCut:
            if any(atom.rows for atom in own):
                raise atoms.RowsAreCut() from None
            new = [atoms.axis(s) for s in sizes]
            plan.append((own, [a for axis in new for a in axis]))
            out += new
    g.registered(out)

    def build(b):
        v = b.get(x)
        for own, new in plan:
            old_names, new_names = b.names_of(own), b.names_of(new)
            if any(d in v.dims for d in old_names):
                v = b.refold(v, old_names, new_names)
        return v

    return g.new(out, build, shape, register=False)


def _moved(g, x, order):
    return g.same(x, [x.axes[i] for i in order])


@rule("aten.transpose")
def transpose(g, x, a, b):
    order = list(range(len(x.axes)))
    order[a], order[b] = order[b], order[a]
    return _moved(g, x, order)


@rule("aten.t", "aten.numpy_T")
def t(g, x):
    return _moved(g, x, range(len(x.axes))[::-1])


rule("aten.mT", "aten.adjoint")(lambda g, x: transpose(g, x, -2, -1))


@rule("aten.permute")
def permute(g, x, order):
    return _moved(g, x, order)


@rule("aten.movedim")
def movedim(g, x, source, to):
    order = [i for i in range(len(x.axes)) if i != source % len(x.axes)]
    order.insert(to % len(x.axes), source % len(x.axes))
    return _moved(g, x, order)


@rule("aten.expand", "aten.expand_as", "aten.broadcast_to")
def expand(g, x, *_, **__):
    shape = g.shape
    own = [[]] * (len(shape) - len(x.axes)) + list(x.axes)
    rows = g.exported.rows_axes.get(g.node, ())
    out = [
        axis if flat(axis) or size == 1 else atoms.axis(size, rows=i in rows)
        for i, (axis, size) in enumerate(zip(own, shape))
    ]
    return g.new(out, lambda b: b.get(x))


@rule("aten.repeat")
def repeat(g, x, times):
    own = [[]] * (len(times) - len(x.axes)) + list(x.axes)
    return g.new([atoms.axis(int(n)) + list(axis) for n, axis in zip(times, own)], lambda b: b.get(x))


@rule("aten.repeat_interleave")
def repeat_interleave(g, x, times, dim=0, **_):
    new = atoms.axis(int(times))
    atoms.hint(new, "choice", 1)
    out = [list(axis) + new if i == dim % len(x.axes) else axis for i, axis in enumerate(x.axes)]
    return g.new(out, lambda b: b.get(x))


@rule("aten.broadcast_tensors")
def broadcast_tensors(g, tensors):
    return [g.same(x, shape=x.shape) for x in tensors]


# Parts.
@rule("aten.slice")
def slice_(g, x, dim=0, start=None, end=None, step=1):
    size = x.shape[dim]
    start, end = _plain(start, 0), _plain(end, size)
    start = max(start + size, 0) if start < 0 else min(start, size)
    end = min(end + size if end < 0 else end, size)
    if step != 1:
        return g.strided(x, dim % len(x.axes), start, len(range(start, end, step)), step)
    return g.part(x, dim, start, end - start)


@rule("aten.narrow")
def narrow(g, x, dim, start, length):
    return g.part(x, dim, _plain(start, 0), length)


@rule("aten.select")
def select(g, x, dim, at):
    dim %= len(x.axes)
    y = g.part(x, dim, int(at) % x.shape[dim], 1, equal=True)
    return _without(g, y, dim)


def _without(g, y, dim):
    return g.same(
        y, [axis for j, axis in enumerate(y.axes) if j != dim], [s for j, s in enumerate(y.shape) if j != dim]
    )


def _parts(g, x, sizes, dim):
    parts, at, equal = [], 0, len(set(sizes)) == 1
    for size in sizes:
        parts.append(g.part(x, dim, at, size, equal))
        at += size
    return parts


@rule("aten.split")
def split(g, x, size, dim=0):
    if isinstance(size, (list, tuple)):
        return _parts(g, x, list(size), dim)
    whole = x.shape[dim]
    return _parts(g, x, [min(size, whole - i) for i in range(0, whole, size)], dim)


@rule("aten.split_with_sizes")
def split_with_sizes(g, x, sizes, dim=0):
    return _parts(g, x, list(sizes), dim)


@rule("aten.chunk")
def chunk(g, x, parts, dim=0):
    return split(g, x, -(-x.shape[dim] // parts), dim)


@rule("aten.unbind")
def unbind(g, x, dim=0):
    dim %= len(x.axes)
    return [_without(g, y, dim) for y in _parts(g, x, [1] * x.shape[dim], dim)]


# One after the other.
@rule("aten.cat")
def cat(g, tensors, dim=0):
    shape = g.shape
    dim %= len(shape)
    tensors = [x for x in tensors if len(x.shape) == len(shape) and x.shape[dim] > 0]
    if len(tensors) == 1:
        return g.same(tensors[0])
    first = max(tensors, key=lambda x: x.known is None)
    out = [atoms.axis(shape[dim]) if j == dim else axis for j, axis in enumerate(first.axes)]
    for x in tensors:
        for j, axis in enumerate(x.axes):
            if j != dim and flat(axis):
                out[j] = out[j] if flat(out[j]) else axis
                unify(axis, out[j])
    to = out[dim]

    def build(b):
        values, along = [], []
        for x in tensors:
            target = [axis if j == dim else out[j] for j, axis in enumerate(x.axes)]
            v, name = b.joined(b.get(x, target), flat(x.axes[dim]))
            values.append(v)
            along.append(name)
        return b.concat(values, along, to)

    return g.new(out, build)


@rule("aten.stack")
def stack(g, tensors, dim=0):
    first = max(tensors, key=lambda x: x.known is None)
    for x in tensors:
        for axis, target in zip(x.axes, first.axes):
            if flat(axis) and flat(target):
                unify(axis, target)
    new, out = atoms.axis(len(tensors)), list(first.axes)
    out.insert(dim % (len(out) + 1), new)
    if not new:
        return g.same(tensors[0], out)
    return g.new(out, lambda b: b.stack([b.get(x, first.axes) for x in tensors], b.whole(new)))


@rule("aten.roll")
def roll(g, x, shifts, dims=()):
    shifts, dims = list(shifts), list(dims)
    if len(dims) != len(shifts):
        raise Refusal("roll without dims", "say along which")
    y = x
    for shift, d in zip(shifts, dims):
        d %= len(x.axes)
        size = x.shape[d]
        at = size - shift % size
        if at == size:
            continue
        y = _rolled(g, y, d, at, size)
    return y if isinstance(y, Tensor) and y is not x else g.same(x)


def _rolled(g, x, d, at, size):
    parts = [g.part(x, d, at, size - at), g.part(x, d, 0, at)]
    new = atoms.axis(size)
    out = [new if j == d else axis for j, axis in enumerate(x.axes)]

    def build(b):
        joined = [b.joined(b.get(p), flat(p.axes[d])) for p in parts]
        return b.concat([v for v, _ in joined], [name for _, name in joined], new)

    return g.new(out, build, x.shape)


@rule("aten.pad", "aten.constant_pad_nd")
def pad(g, x, widths, mode="constant", value=None):
    if mode != "constant" or value not in (None, 0, 0.0):
        raise Refusal(f"pad with mode '{mode}' and value {value}", "zeros are known; cat takes any others")
    plan = []
    for i in range(len(widths) // 2):
        before, after = widths[2 * i], widths[2 * i + 1]
        if before < 0 or after < 0:
            raise Refusal("pad with negative widths", "slice instead")
        if before or after:
            plan.append((len(x.axes) - 1 - i, before))
    out = list(x.axes)
    for d, _ in plan:
        out[d] = atoms.axis(g.shape[d])

    def build(b):
        v = b.get(x)
        for d, before in plan:
            v, name = b.joined(v, flat(x.axes[d]))
            v = b.pad(v, name, out[d], before)
        return v

    return g.new(out, build)
