"""Nodes of the file, out of tensors with named atoms. Rules build with it: `b.op("mul", x, 2.0)`.

A `Made` is a node with its dims. Operands are lined up by names; what a tensor's axes have and a Made lacks is
broadcast where an op needs it, and nowhere else. Equal nodes of one piece are one.
"""

import dataclasses
import hashlib
import math

import numpy as np

from .atoms import flat, size_of
from .export import dtype_of, shape_of
from .rules import Refusal, name_of
from .tensors import RowsCount

_far = 1e30  # in place of infinity
_views = {f"aten.{name}" for name in ("view", "reshape", "flatten", "unsqueeze", "squeeze", "contiguous", "clone", "alias")}


@dataclasses.dataclass(frozen=True)
class Made:
    index: int
    dims: tuple


class Builder:
    def __init__(self, names, input_names):
        self.names, self.input_names = names, input_names
        self.nodes = []  # dicts as in the file; "_dims" beside
        self.piece, self.scope, self.source = 0, "", ""
        self.in_loss = False  # are terms of the loss being built?
        self.inputs = {}  # name -> node of the exported graph
        self.functions = {}  # name -> what an input is of the node's value, if not that
        self.leads = {}  # name -> the axis of its rows, where that is not the first
        self.parameters = {}  # name -> Tensor
        self._same, self._values, self._pieces = {}, {}, {}

    # Names.
    def name(self, atom):
        return self.names.of(atom)

    def names_of(self, axis):
        return [self.name(atom) for atom in flat(axis)]

    # Values of tensors.
    def get(self, x, target=None):
        """The value of a tensor; under the names of other axes, lined up from the last."""
        if target is None:
            return self._value(x)
        own = x.axes
        rank = min(len(own), len(target))
        return self.get_as(x, own[len(own) - rank :], target[len(target) - rank :])

    def get_as(self, x, own, target):
        made, pairs = self._value(x), {}
        for p, q in zip(own, target):
            p, q = flat(p), flat(q)
            if not p or not q:
                continue
            if [a.size for a in p] == [a.size for a in q]:
                pairs.update({self.name(a): self.name(b) for a, b in zip(p, q) if self.name(a) in made.dims})
            elif any(self.name(a) in made.dims for a in p):
                made = self.refold(self.rename(made, pairs), [self.name(a) for a in p], [self.name(a) for a in q])
                pairs = {}
        return self.rename(made, pairs)

    def _value(self, x):
        made = getattr(x, "made", None)
        if made is None:
            made = x.made = x.build(self)
            assert isinstance(made, Made), x.build
        at = self._pieces.get(made.index)
        while at is not None and at < self.piece:  # what goes on goes on through every piece between
            at += 1
            keep, self.piece = self.piece, at
            made = self._add("boundary", [made], made.dims)
            self.piece = keep
        return made

    # Leaves, which are made where they are read.
    def parameter(self, name, x):
        self.parameters[name] = x
        dims = [d for axis in x.axes for d in self.names_of(axis)]
        trained = self.trained(x)
        return self._leaf("param", dims, name=name, dims=dims, train=trained)

    def trained(self, x):
        return bool(x.leaf.requires_grad)

    def state(self, name, x):
        self.parameters[name] = x
        dims = [d for axis in x.axes for d in self.names_of(axis)]
        return self._leaf("state", dims, name=name, dims=dims)

    def observe(self, state, seen, momentum):
        """After a step the state moves towards what was seen, of which gradients know nothing."""
        seen = self._add("stop_gradient", [seen], seen.dims)
        self._add("observe", [state, seen], state.dims, momentum=float(momentum))

    def known(self, x):
        value, host = x.known.value, x.known.host
        for axis in x.known.rows_axes:
            if value.shape[axis] > 1 and not host:
                if _constant_along(value, axis):
                    value = value.narrow(axis, 0, 1)
                else:
                    host = True
        return self._input(x, value) if host else self._constant(x, value)

    def _input(self, x, value):
        for i in x.known.rows_axes:
            if value.shape[i] > 1 and not any(a.rows for a in flat(x.axes[i])):
                raise Refusal(
                    f"an input of {list(value.shape)}, of which axis {i} mixes rows and other places",
                    "keep the batch an axis of its own",
                )
        node = self._as_given(_itself(x.node))
        name = self._input_name(node)
        self.inputs[name] = node
        axes = list(x.axes)
        lead = next((i for i in x.known.rows_axes if any(a.rows for a in flat(axes[i]))), 0)
        if lead and node is _itself(x.node):
            self.leads[name] = lead
            axes.insert(0, axes.pop(lead))
        dims = [self.name(a) for axis in axes for a in flat(axis)]
        given = ["batch" if self.names.rows(d) else d for d in dims]
        kind = "input" if value.dtype.is_floating_point else "ids"
        made = self._leaf(kind, given, name=name, dims=given)
        return self.rename(made, {a: b for a, b in zip(given, dims) if a != b})

    def derived(self, node, what, function, dims):
        """ids that are computed of a known value of every batch."""
        node = _itself(node)
        name = f"{self.input_names.get(node, node.name)}.{what}"
        self.inputs[name], self.functions[name] = node, function
        return self._leaf("ids", dims, name=name, dims=dims)

    def _as_given(self, node):
        """The batch's own tensor, where nothing but its shape is another."""
        at = node
        while at not in self.input_names:
            if at.op != "call_function" or name_of(at.target) not in _views:
                return node
            at = at.args[0]
        return at

    def _input_name(self, node):
        for name, other in self.inputs.items():
            if other is node:
                return name
        name = self.input_names.get(node, node.name)
        while name in self.inputs:
            name += "_"
        return name

    def _constant(self, x, value):
        for axis, size in enumerate(value.shape):
            if size > 1 and _constant_along(value, axis):
                value = value.narrow(axis, 0, 1)
        dims = []
        for axis, size in zip(x.axes, value.shape):
            if size > 1:
                dims += self.names_of(axis)
        return self.values(dims, value.detach().cpu().numpy())

    def values(self, dims, numbers):
        """An array of the program; whole numbers are i32."""
        numbers = np.asarray(numbers)
        whole = numbers.dtype.kind in "biu"
        if numbers.dtype.kind == "b":
            numbers = numbers.astype(np.int64)
        flat_numbers = numbers.reshape(-1)
        if whole and len(dims) == 1 and np.array_equal(flat_numbers, np.arange(len(flat_numbers))):
            return self._leaf("iota", dims, dim=dims[0])
        if not whole and not np.isfinite(flat_numbers).all():
            flat_numbers = np.nan_to_num(flat_numbers.astype(np.float64), posinf=_far, neginf=-_far)
        key = (tuple(dims), whole, hashlib.sha1(np.ascontiguousarray(flat_numbers)).digest())
        if key not in self._values:
            self._values[key] = self._leaf(
                "values",
                list(dims),
                dims=list(dims),
                whole=whole,
                numbers=flat_numbers.astype(np.int64 if whole else np.float64),
                _key=str(key),
            )
        return self._values[key]

    def _leaf(self, kind, result, /, **attributes):
        return self._add(kind, [], result, True, **attributes)

    # Ops.
    def _add(self, kind, inputs, result, leaf=False, /, **attributes):
        operands = [v.index if isinstance(v, Made) else {"number": _finite(v)} for v in inputs]
        shown = {k: v for k, v in attributes.items() if k != "numbers"}
        key = (kind, str(operands), str(shown), None if leaf else self.piece)
        if key in self._same:
            return self._same[key]
        attributes.pop("_key", None)
        node = {"op": kind, **({"in": operands} if operands else {}), **attributes, "_dims": tuple(result)}
        if not leaf:
            node.update(piece=self.piece, scope=self.scope, source=self.source, _term=self.in_loss)
        made = Made(len(self.nodes), tuple(result))
        self.nodes.append(node)
        self._pieces[made.index] = None if leaf else self.piece
        self._same[key] = made
        return made

    def op(self, kind, *inputs, **attributes):
        """An elementwise op, of tensors and at most one number."""
        for v in inputs:
            if isinstance(v, RowsCount):
                raise Refusal(
                    f"a number that depends on how many rows a batch has ({v:g}) goes into {kind}",
                    "divide the loss by it, or take a mean",
                )
        tensors = [v for v in inputs if isinstance(v, Made)]
        dims = _joined(tensors)
        if not any(set(v.dims) == set(dims) for v in tensors):
            widest = max(range(len(inputs)), key=lambda i: len(inputs[i].dims) if isinstance(inputs[i], Made) else -1)
            inputs = list(inputs)
            inputs[widest] = self.broadcast(inputs[widest], dims)
        return self._add(kind, inputs, dims, **attributes)

    def broadcast(self, v, dims):
        """Along all of these dims; those that it has stay."""
        missing = [d for d in dims if d not in v.dims]
        wanted = tuple(missing) + v.dims
        return self._add("broadcast", [v], wanted, dims=list(wanted)) if missing else v

    def rename(self, v, pairs):
        pairs = {a: b for a, b in pairs.items() if a != b and a in v.dims}
        if not pairs:
            return v
        return self._add(
            "rename", [v], tuple(pairs.get(d, d) for d in v.dims), **{"from": list(pairs), "to": list(pairs.values())}
        )

    def reduce(self, kind, v, over):
        """sum, mean or max over atoms or names; along dims that the value lacks, nothing changes but a sum's size."""
        names = [d if isinstance(d, str) else self.name(d) for d in over]
        there = [d for d in names if d in v.dims]
        if there:
            v = self._add(kind, [v], tuple(d for d in v.dims if d not in there), over=there)
        times = 1
        for d in names:
            times *= self.names.size(d) if d not in there else 1
        return self.op("mul", v, float(times)) if kind == "sum" and times != 1 else v

    def product(self, a, b, over):
        names = [d if isinstance(d, str) else self.name(d) for d in over]
        times = 1
        for d in names:
            if d in a.dims and d not in b.dims:
                a = self.reduce("sum", a, [d])
            elif d in b.dims and d not in a.dims:
                b = self.reduce("sum", b, [d])
            elif d not in a.dims:
                times *= self.names.size(d)
        over = [d for d in names if d in a.dims and d in b.dims]
        along = [d for d in a.dims if d in b.dims and d not in over]
        dims = [d for d in a.dims if d not in over] + [d for d in b.dims if d not in over and d not in along]
        made = self._add("contract", [a, b], dims, over=over, along=along) if over else self._add("outer", [a, b], dims)
        return made if times == 1 else self.op("mul", made, float(times))

    def softmax(self, v, axis):
        names = [d for d in self.names_of(axis) if d in v.dims]
        if not names:
            return self.op("mul", self.op("exp", self.op("mul", v, 0.0)), 1 / size_of(axis))
        if len(names) == 1 and size_of(axis) == self.names.size(names[0]):
            return self._add("softmax", [v], v.dims, over=names[0])
        v = self.broadcast(v, self.names_of(axis))
        names = self.names_of(axis)
        top = self._add("stop_gradient", [self.reduce("max", v, names)], tuple(d for d in v.dims if d not in names))
        e = self.op("exp", self.op("sub", v, top))
        return self.op("div", e, self.reduce("sum", e, names))

    def node(self, kind, inputs, result, /, **attributes):
        """Any kind of node of the file; `result`: its dims."""
        return self._add(kind, list(inputs), result, **attributes)

    def rows_count(self):
        """How many rows there are."""
        ones = self._add("broadcast", [self.values([], [1.0])], ("batch",), dims=["batch"])
        return self._add("sum", [ones], (), over=["batch"])

    # Parts of dims.
    def index(self, v, axis, place):
        """One place of a dim, or of the product of an axis's atoms."""
        for d in reversed([axis] if isinstance(axis, str) else self.names_of(axis)):
            place, at = divmod(place, self.names.size(d))
            if d in v.dims:
                v = self._add("index", [v], tuple(q for q in v.dims if q != d), dim=d, at=at)
        return v

    def slice(self, v, name, to, start, step=1):
        """Along the dim `name`, so many as the axis `to` has, which may be of several atoms."""
        if name not in v.dims:
            return v
        if not flat(to):
            return self.index(v, name, start)
        whole = self.whole(to)
        more = {"from": name, "to": whole} | ({"step": step} if step != 1 else {})
        made = self._add("slice", [v], tuple(whole if d == name else d for d in v.dims), start=start, **more)
        return self.unfold(made, to)

    def _stepping(self, axes, steps):
        """(names, steps) of the atoms of some axes, of which each goes so far."""
        pairs = []
        for axis, step in zip(axes, steps):
            names = self.names_of(axis)
            for k, d in enumerate(names):
                pairs.append((d, step * math.prod(self.names.size(q) for q in names[k + 1 :])))
        return [d for d, _ in pairs], [step for _, step in pairs]

    def windows(self, v, name, to, taps, steps):
        """Of the dim `name` the places of `to`, and from each the taps: place * steps[0] + tap * steps[1]."""
        into, each = self._stepping((to, taps), steps)
        if not into:
            return self.index(v, name, 0)
        dims = tuple(q for d in v.dims for q in (into if d == name else [d]))
        return self._add("unfold", [v], dims, steps=each, **{"from": name, "to": into})

    def overlaid(self, v, places, taps, to, steps):
        """The other way round: what meets at a place of `to` is added up."""
        of, each = self._stepping((places, taps), steps)
        if not of:
            v, one = self.joined(v, [])
            of, each = [one], [1]
        v, whole = self.broadcast(v, of), self.whole(to)
        dims = tuple(whole if d == of[0] else d for d in v.dims if d not in of[1:])
        return self._add("fold", [v], dims, steps=each, **{"from": of, "to": whole})

    def rows_from(self, v, name, to, start):
        """So many places of a dim as the dim `to` has, under its name: a rename of all, or of a slice."""
        n = self.names.size(to)
        if n != self.names.size(name):
            first = self.names.plain("first", n)
            dims = tuple(first if d == name else d for d in v.dims)
            v, name = self._add("slice", [v], dims, start=start, **{"from": name, "to": first}), first
        return self.rename(v, {name: to})

    def pad(self, v, name, to, before):
        whole = self.whole(to)
        made = self._add(
            "pad", [v], tuple(whole if d == name else d for d in v.dims), start=before, **{"from": name, "to": whole}
        )
        return self.unfold(made, to)

    def stack(self, vs, dim):
        dims = _joined(vs)
        vs = [self.broadcast(v, dims) for v in vs]
        return self._add("stack", vs, vs[0].dims + (dim,), dim=dim)

    def whole(self, axis):
        """The name of the product of an axis's atoms: theirs, or one for a dim that `unfold` cuts."""
        names = self.names_of(axis)
        return names[0] if len(names) == 1 else self.names.product(names)

    def unfold(self, v, axis):
        names = self.names_of(axis)
        return v if len(names) < 2 else self.refold(v, [self.whole(axis)], names)

    def joined(self, v, atoms):
        """One dim instead of several: (value, its name)."""
        names = [self.name(a) for a in atoms]
        if not names:
            one = self.names.one()
            return self.broadcast(v, [one]), one
        v = self.broadcast(v, names)
        whole = names[0] if len(names) == 1 else self.names.product(names)
        return (v if len(names) == 1 else self.refold(v, names, [whole])), whole

    def refold(self, v, old, new):
        """The product of some dims, cut in another way."""
        if any(self.names.rows(d) for d in [*old, *new]):
            raise Refusal("an axis that mixes the batch's rows with other places is cut in two ways",
                          "keep the batch an axis of its own")
        v = self.broadcast(v, old)
        if len(old) == 1 and len(new) == 1:
            return self.rename(v, {old[0]: new[0]})
        first = next(d for d in v.dims if d in old)
        dims = tuple(q for d in v.dims if d == first or d not in old for q in (new if d == first else [d]))
        return self._add("refold", [v], dims, **{"from": list(old), "to": list(new)})

    def concat(self, vs, along, to):
        dims = _joined([Made(v.index, tuple(d for d in v.dims if d != a)) for v, a in zip(vs, along)])
        vs = [self.broadcast(v, dims + (a,)) for v, a in zip(vs, along)]
        whole = self.whole(to)
        made = self._add(
            "concat", vs, tuple(whole if d == along[0] else d for d in vs[0].dims), along=list(along), to=whole
        )
        return self.unfold(made, to)


_same_value = {f"aten.{name}" for name in ("slice", "expand", "to", "alias", "clone", "contiguous", "view", "reshape")}


def _itself(node):
    """The node whose value it is: every layer may look at the whole of one mask."""
    while node.op == "call_function" and name_of(node.target) in _same_value:
        of = node.args[0]
        if shape_of(of) != shape_of(node) or dtype_of(of) != dtype_of(node):
            break
        node = of
    return node


def _finite(number):
    """Infinity in a mask is as far as all floats reach."""
    if math.isnan(number):
        raise Refusal("a number that is none (NaN)", "leave it out")
    return max(-_far, min(float(number), _far))


def _joined(values):
    dims = []
    for v in values:
        dims += [d for d in v.dims if d not in dims]
    return tuple(dims)


def _constant_along(value, axis):
    return bool((value == value.narrow(axis, 0, 1)).all())
