"""Names of atoms: the roles that layouts speak of. Of an atom's hints the one with the smallest priority counts.

-1 the user's names=   0 kv, group, experts   1 vocab, position, head, choice   2 heads, seq, classes   3 model
 4 ff                  8 parts                9 path and axis of a parameter
"""

import fnmatch
import re

from . import atoms
from .atoms import flat, hint

_shared_roles = ("heads", "kv", "group", "ff", "ff_x", "vocab", "model", "head", "experts", "seq")


class Names:
    """Names of atoms, and their sizes. Those that only nodes have (products, copies) are added while building."""

    def __init__(self):
        self.sizes, self.kinds = {}, {}  # kind: {"batch": True}, {"like": ...}, {"whole": True}
        self._of, self._tensors, self._rows = {}, {}, set()

    def of(self, atom):
        atom = atoms.root(atom)
        if atom not in self._of:
            self._choose(atom)
        return self._of[atom]

    def size(self, name):
        return self.sizes[name]

    def rows(self, name):
        return name in self._rows

    def _choose(self, atom):
        if atom.keys_of is not None:
            base = self._key_name(atom)
        else:
            base = min(atom.hints, default=(99, "batch" if atom.rows else "dim"))[1]
        if atom.rows:
            base = "batch"
        k, name = 1, base
        while not self._fits(name, atom):
            k += 1
            name = f"{base}_{k}"
        self._of[atom] = name
        self.sizes[name] = atom.size
        self._tensors.setdefault(name, set()).update(atom.tensors)
        if atom.rows:
            self._rows.add(name)
        if name == "batch":
            self.kinds[name] = {"batch": True}
        elif atom.rows:
            self.kinds[name] = {"like": "batch", "whole": True}  # the rows once more, which the others are compared with
        elif _is_whole(atom, base):
            self.kinds[name] = {"whole": True}
        elif k > 1 and base in _shared_roles:
            self.kinds.setdefault(name, {"like": base})

    def _key_name(self, atom):
        of = self.of(flat([atom.keys_of])[0])
        return of + "_k"

    def _fits(self, name, atom):
        if self.sizes.get(name, atom.size) != atom.size or (name == "batch" and not atom.rows):
            return False
        if (
            name in self._rows
            and not atom.rows
            or name in self.kinds
            and self.kinds[name].get("whole", False) != _is_whole(atom, name)
        ):
            return False
        return self._tensors.get(name, set()).isdisjoint(atom.tensors)

    def drop_likes_that_meet(self):
        """Dims of one tensor cannot be split over the same axes: such a second size keeps to itself."""
        for name, kind in list(self.kinds.items()):
            base = None if kind.get("whole") else kind.get("like")
            relatives = [n for n, k in self.kinds.items() if n != name and k.get("like") == base] + [base]
            if base and any(not self._tensors[name].isdisjoint(self._tensors.get(n, ())) for n in relatives):
                del self.kinds[name]

    # Names of nodes.
    def product(self, names):
        size = 1
        for n in names:
            size *= self.sizes[n]
        return self._free(".".join(names), size, {})

    def alias(self, base, name, like=True):
        """A second name for a dim, so that a layout may treat the two differently."""
        return self._free(name, self.sizes[base], {"like": base} if like else {"whole": True})

    def like(self, base, name, **more):
        """A second name for a dim, which a layout treats as that one but for what is said."""
        return self._free(name, self.sizes[base], {"like": base, **more})

    def plain(self, name, size):
        return self._free(name, size, {})

    def one(self):
        return self._free("one", 1, {})

    def _free(self, base, size, kind):
        k, name = 1, base
        while name in self.sizes and (
            self.sizes[name] != size or self.kinds.get(name, {}) != kind or name in self._tensors
        ):
            k += 1
            name = f"{base}_{k}"
        self.sizes[name] = size
        if kind:
            self.kinds[name] = kind
        return name

    def entry(self, name):
        return {"name": name, "size": self.sizes[name], **self.kinds.get(name, {})}


def _is_whole(atom, name):
    """Keys, which every query sees; experts that a router looks at."""
    return atom.keys_of is not None or name.startswith("experts_w")


def pattern_of(path):
    """Without the numbers of layers: equal roles of all layers share a name."""
    return re.sub(r"\.\d+(?=\.)", "", path)


def _hint_layers(g):
    """What one matrix of a layer makes and another one takes is the layer's inner width."""
    makes, takes = {}, {}
    for weight, out, into in g.layers:
        for atom in flat(weight.axes[out]):
            makes.setdefault(atom, set()).add(weight.parameter)
        for atom in flat(weight.axes[into]):
            takes.setdefault(atom, set()).add(weight.parameter)
    for atom in makes.keys() & takes.keys():
        if len(makes[atom] | takes[atom]) <= 4 and not any(p < 4 for p, _ in atom.hints):
            paths = [str(p) for p in makes[atom] | takes[atom]]
            experts = atom in g.expert_atoms()
            atom.hints.append((4, "lora" if any("lora_" in p for p in paths) else "ff_x" if experts else "ff"))


def _hint_heads(g):
    for heads in g.attended:
        own = flat(heads)
        if len(own) == 2:
            own[0].hints.append((0, "kv"))
            own[1].hints.append((0, "group"))
        else:
            hint(heads, "heads", 2)


def _hint_model(g, found):
    """The commonest atom, where nothing says which one it is."""
    plain = [a for a in found if not a.rows and not any(p < 4 for p, _ in a.hints)]
    if plain and not any(name == "model" for a in found for _, name in a.hints):
        max(plain, key=lambda a: (found[a], -a.number)).hints.append((3, "model"))


def _apply_user_names(g, names):
    """{"*.q_proj.weight": ("kv*group*head", "model")}. None leaves an axis as it is."""
    wrong = []
    for pattern, spec in names.items():
        fitting = [(key, x) for key, x in g.parameters.items() if fnmatch.fnmatchcase(key, pattern)]
        if not fitting:
            wrong.append((f"names: '{pattern}' fits no parameter", "print(model) shows them"))
        for key, x in fitting:
            spec = (spec,) if isinstance(spec, str) else tuple(spec)
            shown = " x ".join(map(str, x.shape))
            if len(spec) != len(x.axes):
                wrong.append(
                    (
                        f"names: {key} has {len(x.axes)} axes, {shown}, and {len(spec)} names are given",
                        "one per axis; None leaves one as it is",
                    )
                )
                continue
            for axis, text in zip(x.axes, spec):
                words = [w.strip() for w in text.split("*")] if text else []
                own = flat(axis)
                if words and len(words) != len(own):
                    wrong.append(
                        (
                            f"names: '{text}' has {len(words)} names, and that axis of {key} ({shown}) is "
                            f"{' * '.join(str(a.size) for a in own) or 1}",
                            "a name for each factor",
                        )
                    )
                    continue
                for atom, word in zip(own, words):
                    atom.hints.append((-1, word))
    sizes = {}
    for x in g.parameters.values():
        for atom in (a for axis in x.axes for a in flat(axis)):
            for word in (word for p, word in atom.hints if p == -1):
                sizes.setdefault(word, {})[atom.size] = True
    for word, all in sizes.items():
        if len(all) > 1:
            what = f"names: '{word}' is {' here and '.join(map(str, all))} there"
            wrong.append((what, "a name has one size: use another one for the second"))
    if wrong:
        raise NamesRefused(list(dict.fromkeys(wrong)))


def _break_circles(found):
    """What later unions have made the keys of itself is named as anything else."""
    for atom in found:
        seen, at = {atom}, atom
        while at.keys_of is not None:
            at = flat([at.keys_of])[0]
            if at in seen:
                atom.keys_of = None
                break
            seen.add(at)


class NamesRefused(Exception):
    def __init__(self, all):
        super().__init__(str(all))
        self.all = all


def named(g, user_names):
    """Names for every atom of the tensors that were read."""
    for key, x in g.parameters.items():
        for i, axis in enumerate(x.axes):
            hint(axis, f"{pattern_of(key).removeprefix('model.')}.{i}", 9)
    found = {}
    for x in g.all_tensors():
        for axis in x.axes:
            for atom in flat(axis):
                found[atom] = found.get(atom, 0) + 1
    _hint_heads(g)
    _hint_layers(g)
    _hint_model(g, found)
    _apply_user_names(g, user_names or {})
    _break_circles(found)
    names = Names()
    order = lambda a: (a.keys_of is not None, not a.rows, min(a.hints, default=(99, ""))[0], a.number)
    for atom in sorted(found, key=order):
        names.of(atom)
    names.drop_likes_that_meet()
    return names
