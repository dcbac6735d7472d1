"""What rules work on: tensors with axes, and the graph that is read, with what many rules have in common."""

import torch

from . import atoms
from .atoms import cut, flat, hint, unify
from .export import dtype_of, module_path, shape_of
from .rules import Refusal


class RowsCount(float):
    """A number that depends on how many rows a batch has."""


class Tensor:
    """A node's value. Axes may have atoms that the built value lacks: along them it is broadcast, by name."""

    def __init__(self, shape, dtype, axes, build, known=None):
        self.shape, self.dtype, self.known = tuple(shape), dtype, known
        self._axes, self.build = axes, build
        self.node = None  # of the exported graph
        self.linear = None  # what a linear layer made: (x, weight, bias), so that a part of it is cut from the weight
        self.rows_of = None  # rows of a parameter that computed numbers choose: (parameter, numbers)
        self.parameter = None  # its name in the module
        self.experts = False  # a weight of which rows are chosen
        self.shares = False  # what softmax made: of attention, when it is multiplied with values
        self.term = None  # of the loss

    @property
    def axes(self):
        if callable(self._axes):  # of a known value: when a rule asks for them
            self._axes = self._axes()
        return self._axes

    def float(self):
        return self.dtype.is_floating_point

    @property
    def constant(self):
        return self.known is not None and not self.known.host


class Graph:
    """The exported graph while it is read: rules get it as `g`."""

    def __init__(self, exported):
        self.exported = exported
        self.node = None
        self.made = {}  # node -> Tensor, list of tensors or Known
        self.parameters = {}  # our name -> Tensor
        self.attended = []  # axes of heads, and of those of keys
        self.tables = set()  # sizes of what ids look up
        self.layers = []  # (weight, axis of what it makes, axis of what it takes)
        self._tensors, self._dropouts = 0, 0
        self._parts = {}  # name of a parameter -> [(start, length)]

    # The node that a rule is called for.
    @property
    def shape(self):
        return shape_of(self.node)

    @property
    def dtype(self):
        return dtype_of(self.node)

    def new(self, axes, build, shape=None, register=True):
        """A result. `register`: it is a tensor of its own, and no view of one that has these atoms."""
        if register:
            self.registered(axes)
        value = self.node.meta.get("val")
        if shape is None:
            shape = self.shape if isinstance(value, torch.Tensor) else [atoms.size_of(a) for a in axes]
        dtype = value.dtype if isinstance(value, torch.Tensor) else torch.get_default_dtype()
        return Tensor(shape, dtype, axes, build)

    def registered(self, axes):
        self._tensors += 1
        atoms.register(axes, self._tensors)
        return axes

    def same(self, x, axes=None, shape=None):
        """The same values under other axes: a view."""
        y = self.new(x.axes if axes is None else axes, lambda b: b.get(x), shape, register=False)
        y.linear, y.parameter = (x.linear if axes is None else None), None
        y.shares = x.shares and axes is None
        return y

    def all_tensors(self):
        for made in [*self.made.values(), *self.parameters.values()]:
            for x in made if isinstance(made, list) else [made]:
                if isinstance(x, Tensor) and not callable(x._axes):
                    yield x

    def expert_atoms(self):
        """Atoms of weights that are chosen by expert."""
        return {a for weight, *_ in self.layers if weight.experts for axis in weight.axes for a in flat(axis)}

    def dropout_name(self):
        self._dropouts += 1
        return f"{module_path(self.node) or 'model'}/dropout_{self._dropouts}"

    def number(self, x):
        """x as a number, when it is one; else None."""
        if isinstance(x, (bool, int, float)):
            return x
        if isinstance(x, Tensor) and x.constant and x.known.value.numel() == 1 and not x.known.rows_axes:
            return x.known.value.item()
        return None

    def pointwise(self, build, *operands, conditions=()):
        """build(b, values...): elements that line up, by PyTorch's rules of broadcasting, and whole numbers beside
        floats are floats. conditions: the operands that are none of the numbers."""
        numbers = [self.number(x) for x in operands]
        tensors = [x for x, number in zip(operands, numbers) if number is None]
        rank = max(len(x.shape) for x in tensors)
        padded = {id(x): [[]] * (rank - len(x.axes)) + list(x.axes) for x in tensors}
        order = sorted(
            tensors,
            key=lambda x: (x.known is None, sum(len(a.tensors) for p in padded[id(x)] for a in flat(p))),
            reverse=True,
        )
        out, seen = [], set()
        for j in range(rank):
            have = [x for x in order if flat(padded[id(x)][j])]
            axis = padded[id(have[0])][j] if have else []
            for x in have[1:]:
                unify(padded[id(x)][j], axis)
            if seen.intersection(flat(axis)):  # x + x.T: the later axis is a twin
                axis = atoms.twin(axis)
            seen.update(flat(axis))
            out.append(axis)
        self.registered(out)
        values = [x for i, x in enumerate(operands) if numbers[i] is None and i not in conditions]
        mixed = [x for x in values if not x.float()] if any(x.float() for x in values) else []

        def value(b, x):
            v = b.get(x, out)
            return b.node("cast", [v], v.dims, to="run") if any(x is m for m in mixed) else v

        take = lambda b: [value(b, x) if number is None else number for x, number in zip(operands, numbers)]
        return self.new(out, lambda b: build(b, *take(b)), register=False)

    def unary(self, op, x):
        return self.pointwise(lambda b, v: b.op(op, v), x)

    def reduced(self, build, x, dims, keep=False):
        """build(b, value, atoms): without some axes."""
        rank = len(x.axes)
        dims = range(rank) if dims is None or dims == [] else dims if isinstance(dims, (list, tuple)) else [dims]
        dims = [d % rank for d in dims]
        gone = [x.axes[d] for d in dims]
        out = [[] if j in dims else axis for j, axis in enumerate(x.axes) if keep or j not in dims]
        return self.new(out, lambda b: build(b, b.get(x), [a for axis in gone for a in flat(axis)]))

    def product(self, a, b, over, out, shared=(), axes_a=None, axes_b=None):
        """Sums of products. over, shared: pairs of axes, of a and b; out: axes of the result, of either."""
        pa, pb = axes_a or a.axes, axes_b or b.axes
        for p, q in [*over, *shared]:
            if flat(p) and flat(q):
                unify(p, q)
        mine = {atom for axis in pa for atom in flat(axis)}
        target = []  # what b's axes are called in the product
        for q in pb:
            partner = next((p for p, other in [*over, *shared] if other is q and flat(p)), None)
            if partner is None and mine.intersection(flat(q)):
                partner = atoms.twin(q)
                for of, key in zip(flat(q), partner):
                    key.keys_of = of
            target.append(q if partner is None else partner)
        self.registered(target)  # the renamed operand is a tensor, too
        place = {id(q): t for q, t in zip(pb, target)}
        result = [place.get(id(axis), axis) for axis in out]
        summed = [p if flat(p) else q for p, q in over]

        def build(b_):
            return b_.product(b_.get(a), b_.get_as(b, pb, target), [atom for axis in summed for atom in flat(axis)])

        return self.new(result, build)

    # Parts of axes.
    def part(self, x, d, start, length, equal=False):
        """x[..., start:start + length]. equal: one of parts of one size, which become an axis of their own."""
        d %= len(x.axes)
        size = x.shape[d]
        shape = [length if j == d else s for j, s in enumerate(x.shape)]
        if length == size:
            return self.same(x, shape=shape)
        if equal and size % length == 0 and start % length == 0:
            try:
                leading, rest = cut(x.axes[d], size // length)
            except atoms.NoCommonCut:
                leading = []
            if len(leading) == 1:
                hint(leading, "parts", 8)
                out = [rest if j == d else axis for j, axis in enumerate(x.axes)]
                return self.new(out, lambda b: b.index(b.get(x), leading, start // length), shape)
        if x.linear and d == len(x.axes) - 1 and self._weight_is_cut(x, d):
            return self._part_of_linear(x, start, length, shape)
        return self._slice(x, d, start, length, shape)

    def _slice(self, x, d, start, length, shape, step=1):
        own = flat(x.axes[d])
        tail = own[1:]
        if step != 1 or start % atoms.size_of(tail) or length % atoms.size_of(tail):  # inside of the last atoms
            tail = []
        head, unit = own[: len(own) - len(tail)], atoms.size_of(tail)
        new = atoms.axis(length // unit)
        out = [new + tail if j == d else axis for j, axis in enumerate(x.axes)]

        def build(b):
            v = b.get(x)
            if not any(name in v.dims for name in b.names_of(head)):
                return v
            v, whole = b.joined(v, flat(head))
            return b.slice(v, whole, new, start // unit, step)

        return self.new(out, build, shape)

    def strided(self, x, d, start, length, step):
        shape = [length if j == d else s for j, s in enumerate(x.shape)]
        return self._slice(x, d, start, length, shape, step)

    def _weight_is_cut(self, x, d):
        """Is a layer's result read in slices of its last axis only, and its weight nowhere else?"""
        _, weight, bias = x.linear
        leaves = [weight] + ([bias] if bias is not None else [])
        if any(leaf.parameter is None or len(leaf.node.users) != 1 for leaf in leaves):
            return False
        slices = ("aten.slice", "aten.narrow", "aten.split", "aten.split_with_sizes", "aten.chunk")
        from .rules import name_of

        def last(user):
            if name_of(user.target) == "aten.split_with_sizes" or name_of(user.target) in ("aten.split", "aten.chunk"):
                at = user.args[2] if len(user.args) > 2 else user.kwargs.get("dim", 0)
            else:
                at = user.args[1] if len(user.args) > 1 else 0
            return at % len(x.shape) == d

        return all(name_of(user.target) in slices and last(user) for user in x.node.users)

    def _part_of_linear(self, x, start, length, shape):
        """A part of what a layer makes is what a part of its weight makes: layouts see the parts."""
        of, weight, bias = x.linear
        weight, bias = self.parameter_part(weight, start, length), bias and self.parameter_part(bias, start, length)
        y = self.product(of, weight, [(of.axes[-1], weight.axes[1])], list(of.axes[:-1]) + [weight.axes[0]])
        y.shape = tuple(shape)
        return y if bias is None else self._with_bias(y, bias)

    def _with_bias(self, y, bias):
        unify(bias.axes[-1], y.axes[-1])
        return self.new(y.axes, lambda b: b.op("add", b.get(y), b.get(bias, [y.axes[-1]])), y.shape, register=False)

    def parameter_part(self, whole, start, length):
        name = f"{whole.parameter}[{start}:{start + length}]"
        if name not in self.parameters:
            for s, n in self._parts.setdefault(whole.parameter, []):
                if s < start + length and start < s + n:
                    raise Refusal(f"{whole.parameter} is read in parts that overlap", "cut it once, with split")
            self._parts[whole.parameter].append((start, length))
            axes = self.registered([atoms.axis(length)] + [atoms.axis(s) for s in whole.shape[1:]])
            part = Tensor((length, *whole.shape[1:]), whole.dtype, axes, None)
            part.parameter, part.node, part.leaf = whole.parameter, whole.node, whole.leaf
            part.range = (start, length)
            part.build = lambda b: b.parameter(name, part)
            self.parameters[name] = part
        return self.parameters[name]
