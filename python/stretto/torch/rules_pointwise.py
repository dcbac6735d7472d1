"""Elementwise ops, casts, and sums over axes."""

import math

import torch

from .atoms import flat
from .rules import Refusal, rule
from .tensors import Tensor

_same_name = (
    "exp",
    "log",
    "neg",
    "relu",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "tanh",
    "silu",
    "sign",
    "abs",
    "sin",
    "cos",
    "erf",
)


def _unary(op):
    return lambda g, x: g.unary(op, x)


for _op in _same_name:
    rule(f"aten.{_op}", f"aten.{_op}_")(_unary(_op))
rule("aten.square")(_unary("square"))


def _binary(op, swapped=False):
    def apply(g, a, b, alpha=1):
        if swapped:
            a, b = b, a
        if alpha != 1:
            return g.pointwise(lambda make, x, y: make.op(op, x, _scaled(make, y, alpha)), a, b)
        return g.pointwise(lambda make, x, y: make.op(op, x, y), a, b)

    return apply


def _scaled(b, y, alpha):
    return y * alpha if isinstance(y, (int, float)) else b.op("mul", y, float(alpha))


for _name, _op in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "maximum": "maximum",
    "minimum": "minimum",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}.items():
    rule(f"aten.{_name}", f"aten.{_name}_")(_binary(_op))
rule("aten.rsub")(_binary("sub", swapped=True))


@rule("aten.div", "aten.div_", "aten.true_divide")
def div(g, a, b, rounding_mode=None):
    if rounding_mode:
        raise Refusal(f"division with rounding_mode='{rounding_mode}'", "round on the host, before the model")
    return g.pointwise(lambda make, x, y: make.op("div", x, y), a, b)


@rule("aten.reciprocal")
def reciprocal(g, x):
    return g.pointwise(lambda b, v: b.op("div", 1.0, v), x)


@rule("aten.where")
def where(g, condition, a, b):
    return g.pointwise(lambda make, c, x, y: make.op("where", c, *_one_number(make, c, x, y)), condition, a, b,
                       conditions=(0,))


def _one_number(b, c, x, y):
    """At most one of the two may be a number."""
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        y = b.values([], [float(y)])
    return x, y


@rule("aten.masked_fill")
def masked_fill(g, x, mask, value):
    return g.pointwise(lambda b, v, m: b.op("where", m, float(value), v), x, mask, conditions=(1,))


@rule("aten.clamp")
def clamp(g, x, min=None, max=None):
    def build(b, v):
        v = v if min is None else b.op("maximum", v, float(min))
        return v if max is None else b.op("minimum", v, float(max))

    return g.pointwise(build, x)


@rule("aten.pow")
def power(g, x, exponent):
    base, n = g.number(x), g.number(exponent)
    if base is not None and base > 0:
        return g.pointwise(lambda b, v: b.op("exp", b.op("mul", v, math.log(base))), exponent)
    if n is None:
        raise Refusal("a power with a tensor as exponent", "write it as exp(b * log(a))")
    special = {0.5: "sqrt", -0.5: "rsqrt"}
    if n in special:
        return g.unary(special[n], x)
    if n != int(n):
        return g.pointwise(lambda b, v: b.op("exp", b.op("mul", b.op("log", v), float(n))), x)
    if not 1 <= abs(n) <= 64:
        raise Refusal(f"the power {n:g}", "1 to 64, and fractions, are known")

    def build(b, v):
        y = _whole_power(b, v, int(abs(n)))
        return y if n > 0 else b.op("div", 1.0, y)

    return g.pointwise(build, x)


def _whole_power(b, v, n):
    if n == 1:
        return v
    half = b.op("square", _whole_power(b, v, n // 2))
    return b.op("mul", half, v) if n % 2 else half


@rule("aten.gelu")
def gelu(g, x, approximate="none"):
    return g.unary("gelu" if approximate == "tanh" else "gelu_erf", x)


@rule("aten.softplus")
def softplus(g, x, beta=1.0, threshold=20.0):
    def build(b, v):  # log(1 + exp(-|x|)) + max(x, 0): never too large
        v = v if beta == 1 else b.op("mul", v, float(beta))
        small = b.op("log", b.op("add", b.op("exp", b.op("neg", b.op("abs", v))), 1.0))
        y = b.op("add", small, b.op("relu", v))
        return y if beta == 1 else b.op("mul", y, 1 / beta)

    return g.pointwise(build, x)


@rule("aten.log_sigmoid", "aten.log_sigmoid_forward")
def log_sigmoid(g, x):
    return g.pointwise(lambda b, v: b.op("log", b.op("sigmoid", v)), x)


@rule("aten.expm1")
def expm1(g, x):
    return g.pointwise(lambda b, v: b.op("sub", b.op("exp", v), 1.0), x)


@rule("aten.log1p")
def log1p(g, x):
    return g.pointwise(lambda b, v: b.op("log", b.op("add", v, 1.0)), x)


@rule("aten.leaky_relu")
def leaky_relu(g, x, slope=0.01):
    return g.pointwise(
        lambda b, v: b.op("sub", b.op("relu", v), b.op("mul", b.op("relu", b.op("neg", v)), float(slope))), x
    )


@rule("aten.hardtanh")
def hardtanh(g, x, low=-1.0, high=1.0):
    return clamp(g, x, low, high)


@rule("aten.elu")
def elu(g, x, alpha=1.0, scale=1.0, input_scale=1.0):
    def build(b, v):
        low = b.op("exp", b.op("mul", b.op("minimum", v, 0.0), float(input_scale)))
        y = b.op("add", b.op("relu", v), b.op("mul", b.op("sub", low, 1.0), float(alpha)))
        return y if scale == 1 else b.op("mul", y, float(scale))

    return g.pointwise(build, x)


@rule("aten.xlogy")
def xlogy(g, x, y):
    def build(b, p, q):
        return b.op("where", b.op("not_equal", p, 0.0), b.op("mul", p, b.op("log", q)), 0.0)

    return g.pointwise(build, x, y)


@rule("aten.logical_not", "aten.bitwise_not")
def logical_not(g, x):
    return g.pointwise(lambda b, v: b.op("equal", v, 0.0), x)


@rule("aten.dropout", "aten.native_dropout")
def dropout(g, x, p, train):
    if p == 0 or not train:
        return g.same(x)
    name = g.dropout_name()
    y = g.pointwise(lambda b, v: b.node("dropout", [v], v.dims, rate=float(p), name=name), x)
    y.shares = x.shares
    return y


# Types. Between float types nothing happens where the run is f32 or f64.
@rule("aten.to", "aten._to_copy", "aten.type_as")
def to(g, x, *_, **__):
    if not g.dtype.is_floating_point:
        if x.float():
            raise Refusal(
                "floats become whole numbers in the middle of the model", "round on the host, before the model"
            )
        return g.same(x)
    if not x.float():
        return g.pointwise(lambda b, v: b.node("cast", [v], v.dims, to="run"), x)
    return g.same(x)


@rule(
    "aten.contiguous",
    "aten.clone",
    "aten.alias",
    "aten.detach_",
    "aten.lift_fresh_copy",
    "aten.lift_fresh",
    "aten.view_as",
)
def same(g, x, *_, **__):
    return g.same(x)


@rule("aten.detach")
def detach(g, x):
    return g.pointwise(lambda b, v: b.node("stop_gradient", [v], v.dims), x)


# Sums.
@rule("aten.sum")
def sum_(g, x, dim=None, keepdim=False, dtype=None):
    return g.reduced(lambda b, v, gone: b.reduce("sum", v, gone), x, dim, keepdim)


@rule("aten.mean")
def mean(g, x, dim=None, keepdim=False, dtype=None):
    return g.reduced(lambda b, v, gone: b.reduce("mean", v, gone), x, dim, keepdim)


@rule("aten.amax")
def amax(g, x, dim=None, keepdim=False):
    return g.reduced(lambda b, v, gone: b.reduce("max", v, gone), x, dim, keepdim)


@rule("aten.amin")
def amin(g, x, dim=None, keepdim=False):
    return g.reduced(lambda b, v, gone: b.op("neg", b.reduce("max", b.op("neg", v), gone)), x, dim, keepdim)


def no_places(g, axes):
    """Where the largest stands: known to nobody who needs it."""

    def build(b):
        raise Refusal("where the largest element stands", "use topk, or the values alone")

    y = g.new(axes, build, register=False, shape=[math.prod(a.size for a in flat(axis)) for axis in axes])
    y.dtype = torch.int64
    return y


def _extreme(name, largest):
    def apply(g, x, dim=None, keepdim=False):
        if isinstance(dim, Tensor):
            return g.pointwise(lambda b, p, q: b.op("maximum" if largest else "minimum", p, q), x, dim)
        values = (amax if largest else amin)(g, x, dim, keepdim)
        return values if dim is None else [values, no_places(g, values.axes)]

    rule(name)(apply)


_extreme("aten.max", True)
_extreme("aten.min", False)


@rule("aten.var")
def var(g, x, dim=None, correction=1, keepdim=False, unbiased=None):
    def build(b, v, gone):
        n = math.prod(a.size for a in gone)
        c = b.op("sub", v, b.reduce("mean", v, gone))
        y = b.reduce("mean", b.op("square", c), gone)
        less = correction if unbiased is None else int(unbiased)
        return b.op("mul", y, n / (n - less)) if less else y

    return g.reduced(build, x, dim, keepdim)


@rule("aten.linalg_vector_norm")
def vector_norm(g, x, ord=2, dim=None, keepdim=False, dtype=None):
    if ord != 2:
        raise Refusal(f"a norm of order {ord}", "write it with abs, amax and sum")
    return g.reduced(lambda b, v, gone: b.op("sqrt", b.reduce("sum", b.op("square", v), gone)), x, dim, keepdim)


@rule("aten.softmax", "aten._softmax")
def softmax(g, x, dim, *_, **__):
    axis = x.axes[dim]
    y = g.new(x.axes, lambda b: b.softmax(b.get(x), axis), register=False)
    y.shares = dim % len(x.axes) == len(x.axes) - 1
    return y


@rule("aten.log_softmax", "aten._log_softmax")
def log_softmax(g, x, dim, *_, **__):
    axis = x.axes[dim]

    def build(b):
        v = b.get(x)
        names = b.names_of(axis)
        top = b.reduce("max", v, names)
        top = b.node("stop_gradient", [top], top.dims)
        c = b.op("sub", v, top)
        return b.op("sub", c, b.op("log", b.reduce("sum", b.op("exp", c), names)))

    return g.new(x.axes, build, register=False)


@rule("aten.logsumexp")
def logsumexp(g, x, dim, keepdim=False):
    def build(b, v, gone):
        top = b.reduce("max", v, gone)
        top = b.node("stop_gradient", [top], top.dims)
        return b.op("add", b.op("log", b.reduce("sum", b.op("exp", b.op("sub", v, top)), gone)), top)

    return g.reduced(build, x, dim, keepdim)
