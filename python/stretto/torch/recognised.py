"""What modules write out and Stretto has an op for: GELU, RMSNorm, rotary positions, weighted sums of experts.

A pattern is a tuple of an op and its operands: a text stands for a node, the same text for the same one; a number for
itself; "#eps" for any number. Operands of add and mul may stand in either order.
"""

import math

import numpy as np

_either_order = ("add", "mul")
_root = math.sqrt(2 / math.pi)
_cube = ("mul", ("square", "x"), "x")
_gelu_inner = ("mul", ("add", "x", ("mul", _cube, 0.044715)), _root)
_patterns = {
    "gelu": [
        ("mul", ("mul", "x", 0.5), ("add", ("tanh", _gelu_inner), 1.0)),
        ("mul", "x", ("mul", ("add", ("tanh", _gelu_inner), 1.0), 0.5)),
        ("mul", ("mul", "x", ("add", ("tanh", _gelu_inner), 1.0)), 0.5),
    ],
    "gelu_erf": [
        ("mul", ("mul", "x", 0.5), ("add", ("erf", ("div", "x", math.sqrt(2))), 1.0)),
        ("mul", ("mul", "x", 0.5), ("add", ("erf", ("mul", "x", 1 / math.sqrt(2))), 1.0)),
        ("mul", ("mul", "x", ("add", ("erf", ("div", "x", math.sqrt(2))), 1.0)), 0.5),
    ],
    "silu": [("mul", "x", ("sigmoid", "x"))],
    "rms_norm": [("mul", ("mul", "x", ("rsqrt", ("add", ("mean", ("square", "x")), "#eps"))), "w")],
    "rotary": [("add", ("mul", "x", "cos"), ("mul", ("concat", ("neg", ("slice", "x")), ("slice", "x")), "sin"))],
    "experts": [("sum", ("mul", ("choose", "x", "m", "which"), "w"))],
}


class Recogniser:
    def __init__(self, nodes, loss, names, exact):
        self.nodes, self.names, self.exact = nodes, names, exact
        self.uses = [0] * len(nodes)
        for n in [*nodes, *loss]:
            for k in n.get("in", ()):
                if isinstance(k, int):
                    self.uses[k] += 1

    def matched(self, at, pattern, found):
        """found: {name: node or number, path: node}. The nodes of the pattern are in found[""]."""
        if isinstance(pattern, str) and pattern.startswith("#"):
            number = at["number"] if isinstance(at, dict) else None
            return number is not None and found.setdefault(pattern, number) == number
        if isinstance(pattern, str):
            return isinstance(at, int) and found.setdefault(pattern, at) == at
        if isinstance(pattern, float):
            return isinstance(at, dict) and math.isclose(at["number"], pattern, rel_tol=1e-6)
        node = self.nodes[at] if isinstance(at, int) else None
        if node is None or node["op"] != pattern[0] or len(node.get("in", ())) != len(pattern) - 1:
            return False
        operands = node["in"]
        orders = [operands] + ([operands[::-1]] if pattern[0] in _either_order else [])
        for order in orders:
            attempt = dict(found)
            attempt[""] = [*found.get("", []), at]
            if all(self.matched(k, p, attempt) for k, p in zip(order, pattern[1:])):
                found.clear()
                found.update(attempt)
                return True
        return False

    def replaced(self, i):
        """Another node in the place of node i; itself where nothing fits."""
        for op, patterns in _patterns.items():
            for pattern in patterns:
                found = {}
                if self.nodes[i]["op"] == pattern[0] and self.matched(i, pattern, found):
                    made = getattr(self, f"_{op}", self._unary)(op, i, found)
                    if made is not None:
                        return made
        return self.nodes[i]

    def _made(self, op, i, inputs, **attributes):
        place = {k: v for k, v in self.nodes[i].items() if k in ("scope", "source", "piece", "_term")}
        return {"op": op, "in": inputs, **attributes, **place, "_dims": self.nodes[i]["_dims"]}

    def _unary(self, op, i, found):
        return self._made(op, i, [found["x"]])

    def _node(self, found, op):
        return next(self.nodes[k] for k in found[""] if self.nodes[k]["op"] == op)

    def _rms_norm(self, op, i, found):
        over = self._node(found, "mean")["over"]
        if len(over) != 1 or self.nodes[found["w"]]["_dims"] != tuple(over) or over[0] not in self.nodes[found["x"]]["_dims"]:
            return None
        return self._made(op, i, [found["x"], found["w"]], over=over[0], eps=found["#eps"])

    def _rotary(self, op, i, found):
        """Tables that are those of one frequency per pair. Computed from these, they have other roundings than the
        module's own f32 tables: in f64 they are kept."""
        cos, sin = self.nodes[found["cos"]], self.nodes[found["sin"]]
        if self.exact or cos["op"] != "values" or sin["op"] != "values" or cos["dims"] != sin["dims"] or len(cos["dims"]) != 2:
            return None
        seq, head = cos["dims"]
        join = self._node(found, "concat")
        halves = [self.nodes[k] for k in (self.nodes[join["in"][0]]["in"][0], join["in"][1])]
        n = self.names.size(head)
        if [h["from"] for h in halves] != [head, head] or [h["start"] for h in halves] != [n // 2, 0] or join["to"] != head:
            return None
        turned = frequencies_of(*(np.asarray(t["numbers"], float).reshape(-1, n) for t in (cos, sin)))
        if turned is None:
            return None
        frequencies, scale = turned
        return self._made(op, i, [found["x"]], seq=seq, head=head, frequencies=frequencies, scale=scale)

    def _experts(self, op, i, found):
        """The sum of what a token's experts say, weighted: weights go into what the experts read."""
        over, chosen = self.nodes[i]["over"], self._node(found, "choose")
        inner = [k for k in found[""] if k != i]
        w, x = self.nodes[found["w"]]["_dims"], self.nodes[found["x"]]["_dims"]
        made = [d for d in chosen["out"] if d not in self.nodes[found["which"]]["_dims"]]
        one = all(self.uses[k] == 1 for k in inner) and all(d in self.nodes[found["which"]]["_dims"] for d in over)
        if not one or set(made) & set(w) or not set(over) <= set(x) or not set(w) <= set(x) or found["w"] > min(inner):
            return None
        mul = next(k for k in inner if self.nodes[k]["op"] == "mul")
        at = next(k for k in inner if self.nodes[k]["op"] == "choose")
        self.nodes[at] = self._made("mul", at, [found["x"], found["w"]])
        self.nodes[at]["_dims"] = x
        out = [d for d in chosen["out"] if d not in over]
        self.nodes[mul] = self.nodes[at]  # nobody reads it any more
        return self._made("choose", i, [at, found["m"], found["which"]], expert=chosen["expert"], out=out) | {"_dims": tuple(out)}


def frequencies_of(cos, sin):
    """(frequencies, scale) of tables {places, head}, which are those of pairs half a head apart. None: they are not."""
    half = cos.shape[1] // 2
    scale = float(np.hypot(cos, sin).mean())
    if len(cos) < 2 or cos.shape[1] % 2 or not np.allclose(cos[:, :half], cos[:, half:]) or scale <= 0:
        return None
    frequencies = np.arctan2(sin[1, :half], cos[1, :half])
    angles = np.arange(len(cos))[:, None] * frequencies
    near = 1e-6 * len(cos)  # f32 rounds angles in proportion to themselves
    if np.abs(scale * np.cos(angles) - cos[:, :half]).max() > near or np.abs(scale * np.sin(angles) - sin[:, :half]).max() > near:
        return None
    return [float(f) for f in frequencies], scale if abs(scale - 1) > 1e-6 else 1.0


def recognised(nodes, loss, names, exact):
    r = Recogniser(list(nodes), loss, names, exact)
    for i in range(len(nodes)):
        r.nodes[i] = r.replaced(i)
    return r.nodes, loss
