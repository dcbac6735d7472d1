"""Axes as products of atoms: how positions become names. Needs no PyTorch.

An axis is an ordered list of atoms, and a tensor a list of axes. Axes that an op lines up become one (`unify`); where a
view cuts an axis inside of an atom, the atom is split, everywhere. The law: no tensor has an atom twice. Where a union
would break it, the two atoms stay apart as twins, and a rename stands between them.

    rows, wide = axis(6), axis(24)
    heads, width = cut(wide, 4)         # 24 = 4 * 6
    unify(axis_of_weights, wide)
"""

import itertools
import math

_numbers = itertools.count()


class NoCommonCut(Exception):
    """Two axes of one size that are cut in ways which have no common factors: 2 * 3 and 3 * 2."""


class RowsAreCut(Exception):
    """A view that cuts or joins the batch's rows."""


class Atom:
    def __init__(self, size, rows=False):
        self.number = next(_numbers)  # atoms that came earlier have smaller ones
        self.size = size
        self.rows = rows  # of the batch
        self.joined = None  # the atom that this one is now
        self.parts = None  # two, once it has been split
        self.twins = []  # atoms that hold the same places in other tensors, past a rename
        self.tensors = set()
        self.hints = []  # (priority, name): the smallest counts
        self.keys_of = None  # the atom of queries, for what they are compared with


def axis(size, rows=False):
    """A new axis; of size 1 it has no atoms, and is broadcast by name."""
    return [Atom(size, rows)] if size != 1 else []


def root(atom):
    while atom.joined:
        atom = atom.joined
    return atom


def flat(axis):
    """Its atoms as they are now."""
    atoms = []
    for atom in axis:
        atom = root(atom)
        if atom.parts:
            atoms += flat(atom.parts)
        elif atom.size != 1:
            atoms.append(atom)
    return atoms


def size_of(axis):
    return math.prod(atom.size for atom in flat(axis))


def sizes_of(axis):
    return [atom.size for atom in flat(axis)]


def hint(axis, name, priority):
    for atom in flat(axis):
        atom.hints.append((priority, name))


def register(axes, tensor):
    """A new tensor with these axes, which a number stands for."""
    seen = set()
    for atom in (a for axis in axes for a in flat(axis)):
        assert atom not in seen, "an atom twice in one tensor"
        seen.add(atom)
        atom.tensors.add(tensor)


def twin(axis):
    """New atoms of the same sizes, which a rename leads to."""
    made = [Atom(atom.size, atom.rows) for atom in flat(axis)]
    for a, b in zip(flat(axis), made):
        a.twins.append(b)
        b.twins.append(a)
    return made


def split(atom, first):
    """atom = first * rest, for it and for all of its twins that allow it."""
    atom = root(atom)
    if atom.parts or first in (1, atom.size):
        return
    if atom.rows:
        raise RowsAreCut()
    if atom.size % first:
        raise NoCommonCut()
    atom.parts = [Atom(first), Atom(atom.size // first)]
    for part in atom.parts:
        part.tensors = set(atom.tensors)
    for other in atom.twins:
        other = root(other)
        if other is atom:
            continue
        split(other, first)
        halves = flat([other])
        if [h.size for h in halves] == [p.size for p in atom.parts]:
            for mine, its in zip(atom.parts, halves):
                if mine is not its:
                    mine.twins.append(its)
                    its.twins.append(mine)


def cut(axis, first):
    """The atoms that make the leading `first`, and the rest; splits an atom where that ends inside of it."""
    leading, have, rest = [], 1, flat(axis)
    while have < first:
        atom = rest.pop(0)
        if atom.size <= first // have and (first // have) % atom.size == 0:
            leading.append(atom)
            have *= atom.size
        else:
            split(atom, first // have)
            rest = flat([atom]) + rest
    return leading, rest


def _refined(p, q):
    """The same cuts in both."""
    while True:
        x, y = flat(p), flat(q)
        at = next((i for i, (a, b) in enumerate(zip(x, y)) if a.size != b.size), None)
        if at is None:
            if len(x) != len(y):
                raise NoCommonCut()
            return x, y
        a, b = x[at], y[at]
        split(*((b, a.size) if a.size < b.size else (a, b.size)))


def unify(p, q):
    """The two are the same dim from now on. False: a rename, or a refold, stands between them."""
    try:
        x, y = _refined(p, q)
    except NoCommonCut:
        return False
    same = True
    for a, b in zip(x, y):
        a, b = root(a), root(b)
        if a is b:
            continue
        if not a.tensors.isdisjoint(b.tensors):
            a.twins.append(b)
            b.twins.append(a)
            same = False
            continue
        if len(b.tensors) > len(a.tensors):
            a, b = b, a
        b.joined = a
        a.tensors |= b.tensors
        a.hints += b.hints
        a.twins += b.twins
        a.rows |= b.rows
        a.keys_of = a.keys_of or b.keys_of
    return same


def regroup(axes, shape):
    """A view: the same atoms in other axes."""
    atoms, out = [a for axis in axes for a in flat(axis)], []
    for size in shape:
        leading, atoms = cut(atoms, size)
        out.append(leading)
    return out
