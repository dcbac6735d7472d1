"""Rows of experts: between the first product that chooses and the sum of a token's experts, rows have a name of their
own, along which ranks that share experts see them all: `batch_x`, as the families have it."""

_stay = {"add", "mul", "div", "sub", "silu", "gelu", "gelu_erf", "relu", "index", "slice", "sum", "neg", "sigmoid", "square",
         "tanh", "exp", "broadcast", "dropout", "where", "choose"}


def with_weights_apart(nodes, loss):
    """A part of what experts' joined weights make is what that part of the weights makes: the parts are chosen from."""
    out, new = [], {}

    def add(node):
        out.append(node)
        return len(out) - 1

    for i, n in enumerate(nodes):
        ins = [new[k] if isinstance(k, int) else k for k in n.get("in", ())]
        chosen = out[ins[0]] if n["op"] == "index" else None
        if chosen is not None and chosen["op"] == "choose" and n["dim"] in out[chosen["in"][1]]["_dims"]:
            x, weight, which = chosen["in"]
            without = lambda dims: [d for d in dims if d != n["dim"]]
            part = add({**n, "in": [weight], "_dims": tuple(without(out[weight]["_dims"]))})
            new[i] = add({**chosen, "in": [x, part, which], "out": without(chosen["out"]), "_dims": n["_dims"]})
        else:
            new[i] = add({**n, "in": ins} if "in" in n else dict(n))
    return out, [t | {"in": [new[k] for k in t["in"]]} for t in loss]


def with_parameters_apart(nodes, loss, leads):
    """A parameter of which nothing but places along one dim is read becomes one for each place: (nodes, loss,
    {name: (name of the whole, dim, place)}). leads(name, dim): is that dim the first of an axis in the module?"""
    readers, parts = {}, {}
    for n in [*nodes, *loss]:
        for k in n.get("in", ()):
            if isinstance(k, int) and nodes[k]["op"] == "param":
                readers.setdefault(k, []).append(n)
    out = list(nodes)
    for k, all in readers.items():
        alike = {(n["op"], n.get("dim")) for n in all} == {("index", all[0].get("dim"))}
        if alike and leads(nodes[k]["name"], all[0]["dim"]):
            for i, n in enumerate(nodes):
                if n["op"] == "index" and n["in"] == [k]:
                    name = f"{nodes[k]['name']}[{n['dim']}={n['at']}]"
                    parts[name] = nodes[k]["name"], n["dim"], n["at"]
                    dims = [d for d in nodes[k]["dims"] if d != n["dim"]]
                    out[i] = {**nodes[k], "name": name, "dims": dims, "_dims": tuple(dims)}
    seen, new = {}, {}  # of several that read one place, the first makes it
    for i, n in enumerate(out):
        new[i] = seen.setdefault(n["name"], i) if n["op"] == "param" else i
    again = lambda n: n | {"in": [new[k] if isinstance(k, int) else k for k in n["in"]]} if "in" in n else n
    return [again(n) for n in out], [again(t) for t in loss], parts


class _Rows:
    def __init__(self, nodes, names):
        self.nodes, self.names = nodes, names
        self.out, self.new, self.renames = [], {}, {}
        self.inside = set()  # of `out`: values whose rows have the other name
        self.rows = names.like("batch", "batch_x", minus="experts")

    def add(self, node, dims):
        self.out.append({**node, "_dims": tuple(dims)})
        return len(self.out) - 1

    def under(self, v, name, like):
        other = "batch" if name == self.rows else self.rows
        dims = self.out[v]["_dims"]
        if other not in dims:
            return v
        if (v, name) not in self.renames:
            place = {k: like[k] for k in ("scope", "piece", "source") if k in like}
            self.renames[v, name] = self.add({"op": "rename", "in": [v], "from": [other], "to": [name], **place},
                                             [name if d == other else d for d in dims])
        return self.renames[v, name]

    def visit(self, i, n):
        ins = [self.new[k] if isinstance(k, int) else k for k in n.get("in", ())]
        chosen = n["op"] == "choose"
        scope = n.get("scope", "")
        own = [k for k in ins if isinstance(k, int) and k in self.inside and scope.startswith(self.out[k].get("_experts", "\n"))]
        inside = chosen or n["op"] in _stay and bool(own)
        name = self.rows if inside else "batch"
        ins = [self.under(k, name, n) if isinstance(k, int) else k for k in ins]
        fix = lambda dims: [name if d in ("batch", self.rows) else d for d in dims]
        again = {**n, **({"in": ins} if "in" in n else {})}
        for key in ("out", "dims"):
            if inside and key in n:
                again[key] = fix(n[key])
        if inside:
            again["_experts"] = scope if chosen else self.out[own[0]]["_experts"]
        self.new[i] = self.add(again, fix(n["_dims"]) if inside else n["_dims"])
        if inside:
            self.inside.add(self.new[i])


def with_expert_rows(nodes, loss, names):
    if not any(n["op"] == "choose" for n in nodes):
        return nodes, loss
    nodes, loss = with_weights_apart(nodes, loss)
    r = _Rows(nodes, names)
    for i, n in enumerate(nodes):
        r.visit(i, n)
    return r.out, [t | {"in": [r.under(r.new[k], "batch", {}) for k in t["in"]]} for t in loss]
