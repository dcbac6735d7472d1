"""Where a pipeline may be cut when no list of modules says it: where the fewest numbers are alive, among pieces of about
the same work."""

import math

_most = 4  # pieces
_leaves = ("param", "input", "ids", "values", "iota", "state")
_products = ("contract", "attention", "choose", "outer")


def _places(nodes, loss, names):
    """Indices of nodes after which it is cut."""
    size = [math.prod(names.size(d) for d in n["_dims"]) for n in nodes]
    inner = [i for i, n in enumerate(nodes) if n["op"] not in _leaves]
    products = sum(nodes[i]["op"] in _products for i in inner)
    pieces = min(_most, products)
    last = {}
    for i in inner:
        for k in nodes[i].get("in", ()):
            last[k if isinstance(k, int) else None] = i
    for term in loss:
        last.update(dict.fromkeys(term["in"], len(nodes)))
    work, done, alive, live, ends = 0, [], [], 0, {}
    for i in inner:
        over = nodes[i].get("over", []) if nodes[i]["op"] in _products else []
        work += size[i] * math.prod(names.size(d) for d in ([over] if isinstance(over, str) else over))
        live += size[i] - ends.pop(i, 0)
        ends[last.get(i, i)] = ends.get(last.get(i, i), 0) + size[i]
        done.append(work)
        alive.append(live)
    cuts = []
    for k in range(1, pieces):
        near = [j for j, d in enumerate(done[:-1]) if abs(d / work - k / pieces) <= 0.5 / pieces and inner[j] not in cuts]
        if near:
            cuts.append(inner[min(near, key=lambda j: (alive[j], abs(done[j] / work - k / pieces)))])
    return sorted(cuts)


def cut_at_narrowest(nodes, loss, names):
    """Nodes with their pieces, and boundaries between these."""
    cuts, out, new, passed = _places(nodes, loss, names), [], {}, {}

    def brought(k, piece):
        """The value as that piece has it: through a boundary of every piece between."""
        node = nodes[k]
        if node["op"] in _leaves:
            return new[k]
        at, value = pieces[k], new[k]
        while at < piece:
            at += 1
            if (k, at) not in passed:
                out.append({"op": "boundary", "in": [value], "piece": at, "_dims": node["_dims"]})
                passed[k, at] = len(out) - 1
            value = passed[k, at]
        return value

    pieces = {}
    for i, n in enumerate(nodes):
        pieces[i] = sum(c < i for c in cuts)
        again = dict(n)
        if "in" in n:
            again["in"] = [brought(k, pieces[i]) if isinstance(k, int) else k for k in n["in"]]
        if n["op"] not in _leaves:
            again["piece"] = pieces[i]
        out.append(again)
        new[i] = len(out) - 1
    return out, [t | {"in": [brought(k, len(cuts)) for k in t["in"]]} for t in loss]
