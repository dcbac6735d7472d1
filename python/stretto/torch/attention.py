"""Attention: one node where the mask is known, else written out."""

import math

from . import atoms
from .atoms import flat, hint, unify
from .masks import end_of, fixed_mask, interval
from .rules import Refusal, rule


def _share_heads(g, q, k, v, grouped):
    """Queries of a group have keys and values in common."""
    heads = q.axes[-3]
    if grouped and q.shape[-3] != k.shape[-3]:
        leading, _ = atoms.cut(heads, k.shape[-3])
        unify(k.axes[-3], leading)
        unify(v.axes[-3], leading)
        return
    for other in (k, v):
        if flat(other.axes[-3]):
            unify(other.axes[-3], heads)


@rule("aten.scaled_dot_product_attention")
def attention(g, q, k, v, mask=None, dropout=0.0, causal=False, scale=None, enable_gqa=False):
    if len(q.axes) < 3:
        raise Refusal("attention without heads", "add an axis of one head")
    _share_heads(g, q, k, v, enable_gqa)
    for i in range(len(q.axes) - 3):
        for other in (k, v):
            if flat(other.axes[i]) and flat(q.axes[i]):
                unify(other.axes[i], q.axes[i])
    unify(k.axes[-1], q.axes[-1])
    unify(v.axes[-2], k.axes[-2])
    if v.shape[-1] == q.shape[-1]:
        unify(v.axes[-1], q.axes[-1])
    hint(q.axes[-1], "head", 1)
    hint(q.axes[-2], "seq", 2)
    g.attended.append(q.axes[-3])
    keys = [atoms.Atom(a.size) for a in flat(k.axes[-2])]
    for key, of in zip(keys, flat(k.axes[-2])):
        key.keys_of = of
    out = list(q.axes[:-1]) + [v.axes[-1]]
    how = _How(
        q,
        k,
        v,
        keys,
        causal,
        0,
        scale if scale is not None else 1 / math.sqrt(q.shape[-1]),
        mask,
        float(dropout),
        g.dropout_name() if dropout else "",
    )
    if mask is not None and mask.constant and not mask.known.rows_axes or mask is not None and _same_rows(mask):
        known = fixed_mask(mask.known.value)
        if known is not None:
            how.mask, how.causal, how.window = None, known.causal, known.window
    if how.mask is not None and _hides_the_ends(q, mask) and not causal:
        how.mask, how.ends = None, mask
    if how.mask is not None:
        axes = [[]] * (len(q.axes) - len(mask.axes)) + list(mask.axes)
        for p, r in zip(axes[:-1], q.axes[:-1]):
            if flat(p) and flat(r):
                unify(p, r)
    g.registered([*q.axes[:-1], keys])
    return g.new(out, how.build)


def _same_rows(mask):
    """A mask that is made per row of the batch, and is the same for all."""
    if not mask.constant:
        return False
    value = mask.known.value
    return all(bool((value == value.narrow(i, 0, 1)).all()) for i in mask.known.rows_axes)


def _hides_the_ends(q, mask):
    """Does the mask come with the batch, the same for all heads, and let every query see keys side by side?"""
    shape, known = mask.shape, mask.known
    if known is None or not known.host or len(shape) != 4 or len(q.shape) != 4 or list(known.rows_axes) != [0]:
        return False
    return shape[0] == q.shape[0] and shape[1] == 1 and shape[2] in (1, q.shape[2]) and interval(known.value) is not None


class _How:
    def __init__(self, q, k, v, keys, causal, window, scale, mask, dropout, name):
        self.q, self.k, self.v, self.keys = q, k, v, keys
        self.causal, self.window, self.scale, self.mask = bool(causal), window, scale, mask
        self.dropout, self.name = dropout, name
        self.ends = None  # a mask of which the first keys and the ends are computed for every batch

    def build(self, b):
        q, k, v = self.q, self.k, self.v
        keys = [*k.axes[:-2], self.keys, k.axes[-1]]
        values = [*v.axes[:-2], self.keys, v.axes[-1]]
        made = b.get(q), b.get(k, keys), b.get(v, values)
        single = all(len(flat(axis)) == 1 for axis in (q.axes[-2], q.axes[-1], self.keys, v.axes[-1]))
        if self.mask is None and single and not self.dropout:
            return self.whole(b, *made)
        return self.written_out(b, *made)

    def whole(self, b, q, k, v):
        """The op. Names of its own for queries and heads, as the families have: a layout may treat them differently."""
        query, head, value = (b.names_of(axis)[0] for axis in (self.q.axes[-2], self.q.axes[-1], self.v.axes[-1]))
        key = b.name(self.keys[0])
        q = b.broadcast(q, [query, head])
        k, v = b.broadcast(k, [key, head]), b.broadcast(v, [key, value])
        names = {query: b.names.alias(query, query + "_q")}
        heads = {name: b.names.alias(name, name + "_q") for name in b.names_of(self.q.axes[-3])}
        q, k, v = b.rename(q, names | heads), b.rename(k, heads), b.rename(v, heads)
        for axis in self.q.axes[:-2]:  # keys may be of other rows only where queries are, too
            missing = [heads.get(d, d) for d in b.names_of(axis) if heads.get(d, d) not in q.dims]
            q = b.broadcast(q, [d for d in missing if d in k.dims or d in v.dims])
        attributes = {} if value == head else {"value": value}
        dims = tuple(value if d == head else d for d in q.dims)
        ends = []
        if self.ends is not None:
            attributes |= {"since": True, "until": True}
            ends = [b.rename(self._end(b, which, query), names) for which in (0, 1)]
        made = b.node(
            "attention",
            [q, k, v, *ends],
            dims,
            query=names[query],
            key=key,
            head=head,
            causal=self.causal,
            window=self.window,
            scale=float(self.scale),
            **attributes,
        )
        return b.rename(made, {new: old for old, new in (names | heads).items()})

    def _end(self, b, which, query):
        queries, name = self.q.shape[-2], ("since", "until")[which]
        return b.derived(self.ends.node, name, lambda mask: end_of(mask, queries, which), ["batch", query])

    def written_out(self, b, q, k, v):
        mask = self.mask if self.ends is None else self.ends
        scores = b.op("mul", b.product(q, k, flat(self.q.axes[-1])), float(self.scale))
        query, keys = b.names_of(self.q.axes[-2]), [b.name(a) for a in self.keys]
        if self.causal:
            seen = self._causal(b, query, keys)
            scores = b.op("where", seen, scores, -1e30)
        if mask is not None:
            m = b.get(mask, [*self.q.axes[:-1], self.keys])
            scores = b.op("where", m, scores, -1e30) if not mask.float() else b.op("add", scores, m)
        weights = b.softmax(scores, self.keys)
        if self.dropout:
            weights = b.node("dropout", [weights], weights.dims, rate=self.dropout, name=self.name)
        return b.product(weights, v, keys)

    def _causal(self, b, query, keys):
        import numpy as np

        n, m = self.q.shape[-2], self.k.shape[-2]
        seen = np.tril(np.ones((n, m), bool))
        return b.values([*query, *keys], seen)
