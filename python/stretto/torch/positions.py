"""Passes over nodes: what the loss does not need is left out; positions of the residual stream get their own name.

Sequence parallelism splits that name, where products and attention take the whole sequence: `seq_r` beside `seq`, as
the families have it.
"""

_local = {
    "add",
    "sub",
    "mul",
    "div",
    "layer_norm",
    "rms_norm",
    "boundary",
    "dropout",
    "broadcast",
    "where",
    "mean",
    "square",
    "rsqrt",
    "cast",
    "gelu",
    "gelu_erf",
    "silu",
    "sum",
    "sqrt",
    "neg",
    "tanh",
    "maximum",
    "minimum",
    "relu",
    "sigmoid",
    "stop_gradient",
}


def pruned(nodes, loss):
    """Without nodes that the loss does not need."""
    live = {i for term in loss for i in term["in"]} | {i for i, n in enumerate(nodes) if n["op"] == "observe"}
    for i in range(len(nodes) - 1, -1, -1):
        if i in live:
            live.update(k for k in nodes[i].get("in", ()) if isinstance(k, int))
    return renumbered(nodes, loss, sorted(live))


_no_gradient = {"stop_gradient", "top_k", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def learned(nodes, loss):
    """Parameters that no gradient reaches are not trained, as in PyTorch."""
    reached = {i for term in loss for i in term["in"]}
    for i in range(len(nodes) - 1, -1, -1):
        if i in reached and nodes[i]["op"] not in _no_gradient:
            reached.update(k for k in nodes[i].get("in", ()) if isinstance(k, int))
    return [n | {"train": False} if n["op"] == "param" and i not in reached else n for i, n in enumerate(nodes)]


def renumbered(nodes, loss, kept):
    new = {old: k for k, old in enumerate(kept)}
    again = lambda n: n | {"in": [new[k] if isinstance(k, int) else k for k in n["in"]]} if "in" in n else dict(n)
    return [again(nodes[i]) for i in kept], [again(t) for t in loss]


def compact_pieces(nodes):
    """Pieces without holes."""
    order = {p: i for i, p in enumerate(sorted({n["piece"] for n in nodes if "piece" in n}))}
    for n in nodes:
        if "piece" in n:
            n["piece"] = order[n["piece"]]
    return max(len(order), 1)


class _Residual:
    def __init__(self, seq, own, width):
        self.seq, self.own, self.width = seq, own, width
        self.out, self.new, self.renames = [], {}, {}

    def add(self, node, dims):
        self.out.append({**node, "_dims": tuple(dims)})
        return len(self.out) - 1

    def under(self, v, name, like):
        """The value with its positions called `name`."""
        dims = self.out[v]["_dims"]
        other = self.seq if name == self.own else self.own
        if other not in dims or name in dims:
            return v
        key = (v, name, like.get("piece"))
        if key not in self.renames:
            place = {k: like[k] for k in ("scope", "piece", "source") if k in like}
            self.renames[key] = self.add(
                {"op": "rename", "in": [v], "from": [other], "to": [name], **place},
                [name if d == other else d for d in dims],
            )
        return self.renames[key]

    def is_local(self, n, operands):
        if n["op"] not in _local or (n["op"] in ("mean", "sum") and self.seq in n["over"]):
            return False
        wide = [self.out[v]["_dims"] for v in operands]
        return any(self.own in dims for dims in wide) or any(
            self.width in dims and self.seq in dims for dims in [*wide, n["_dims"]]
        )

    def visit(self, i, n):
        ins = [self.new[k] if isinstance(k, int) else k for k in n.get("in", [])]
        local = self.is_local(n, [k for k in ins if isinstance(k, int)])
        name = self.own if local else self.seq
        ins = [self.under(k, name, n) if isinstance(k, int) else k for k in ins]
        fix = lambda dims: [self.own if local and d == self.seq else d for d in dims]
        again = {**n, **({"in": ins} if "in" in n else {})}
        if n["op"] == "broadcast":
            again["dims"] = fix(n["dims"])
        self.new[i] = self.add(again, fix(n["_dims"]))
        made = n["op"] not in ("param", "input", "ids", "rename", "values", "iota", "state")
        if not local and made and self.width in n["_dims"] and self.seq in n["_dims"]:
            self.new[i] = self.under(self.new[i], self.own, n)


def with_residual(nodes, loss, names, seq, width):
    """Values with positions and the model's width have the positions' own name."""
    if not any(seq in n["_dims"] and width in n["_dims"] for n in nodes):
        return nodes, loss
    r = _Residual(seq, names.alias(seq, seq + "_r"), width)
    for i, n in enumerate(nodes):
        r.visit(i, n)
    loss = [t | {"in": [r.under(r.new[k], seq, {}) for k in t["in"]]} for t in loss]
    return r.out, loss


def joined_renames(nodes, loss):
    """A rename of a rename is one."""
    uses = {}
    for n in [*nodes, *loss]:
        for k in n.get("in", ()):
            if isinstance(k, int):
                uses[k] = uses.get(k, 0) + 1
    out = list(nodes)
    for i, n in enumerate(out):
        first = out[n["in"][0]] if n["op"] == "rename" else None
        if first is None or first["op"] != "rename" or uses[n["in"][0]] != 1 or first.get("piece") != n.get("piece"):
            continue
        then = dict(zip(n["from"], n["to"]))
        pairs = {a: then.pop(b, b) for a, b in zip(first["from"], first["to"])} | then
        pairs = {a: b for a, b in pairs.items() if a != b}
        if pairs:
            out[i] = {**n, "in": first["in"], "from": list(pairs), "to": list(pairs.values())}
    return out, loss


def rows_meet(nodes):
    """The first node in which rows of a batch meet, so that microbatches would change what it is: (node, why)."""
    for n in nodes:
        if n.get("_term"):
            continue
        rows = lambda dims: [d for d in dims if d == "batch" or d.startswith("batch_")]
        if n["op"] in ("sum", "mean", "max", "contract") and rows(n.get("over", ())):
            return n, "reduces the batch's rows"
        if n["op"] == "softmax" and rows([n["over"]]):
            return n, "goes over the batch's rows"
        if n["op"] == "rename" and rows([*n["from"], *n["to"]]):
            return n, "compares rows of a batch with others"
        if n["op"] in ("concat", "refold", "slice", "index") and rows(
            [*n.get("along", ()), *(x for x in (n.get("from"), n.get("dim")) if isinstance(x, str))]
        ):
            return n, "takes the batch's rows apart"
    return None
