"""Convolutions, pools and norms over images. Windows that do not overlap are parts of axes; others are written out, one
product per place of the window."""

import itertools

from . import atoms
from .atoms import cut, flat, unify
from .rules import Refusal, rule
from .rules_products import normalised, scaled


def _pair(x, n):
    return (
        list(x) if isinstance(x, (list, tuple)) and len(x) == n else [x[0] if isinstance(x, (list, tuple)) else x] * n
    )


def _patches(x, weight, stride, padding):
    return (
        list(stride) == list(weight.shape[2:])
        and not any(padding)
        and all(s % k == 0 for s, k in zip(x.shape[2:], weight.shape[2:]))
    )


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.convolution")
def convolution(g, x, weight, bias=None, stride=1, padding=0, dilation=1, *rest):
    transposed, groups = (rest[0], rest[2]) if len(rest) == 3 else (False, rest[0] if rest else 1)
    n = len(x.shape) - 2
    stride, dilation = _pair(stride, n), _pair(dilation, n)
    if transposed:
        raise Refusal("a transposed convolution", "use upsampling (nearest) and a convolution")
    if isinstance(padding, str):
        padding = [0] * n if padding == "valid" else [(k - 1) * d // 2 for k, d in zip(weight.shape[2:], dilation)]
    padding = _pair(padding, n)
    depthwise = groups == x.shape[1] == weight.shape[0]
    if groups != 1 and not depthwise:
        raise Refusal(f"a convolution in {groups} groups", "one group, or one per channel")
    if groups == 1 and all(d == 1 for d in dilation) and _patches(x, weight, stride, padding):
        y = _patch_product(g, x, weight)
    else:
        y = _written_out(g, x, weight, stride, padding, dilation, depthwise and groups != 1)
    if bias is None:
        return y
    unify(bias.axes[0], y.axes[1])
    return g.new(y.axes, lambda b: b.op("add", b.get(y), b.get(bias, [y.axes[1]])), register=False)


def _patch_product(g, x, weight):
    rows, over = [], [(x.axes[1], weight.axes[1])]
    for axis, size, kernel in zip(x.axes[2:], g.shape[2:], weight.axes[2:]):
        leading, rest = cut(axis, size)
        rows.append(leading)
        over.append((rest, kernel))
    parts = [x.axes[0], x.axes[1]] + [a for pair in zip(rows, [p for p, _ in over[1:]]) for a in pair]
    y = g.product(x, weight, over, [x.axes[0], weight.axes[0], *rows], axes_a=parts)
    y.shape = tuple(g.shape)
    return y


def _written_out(g, x, weight, stride, padding, dilation, depthwise):
    n, sizes, kernel = len(x.shape) - 2, g.shape[2:], weight.shape[2:]
    unify(weight.axes[0 if depthwise else 1], x.axes[1])
    channel = weight.axes[0]
    if not depthwise and set(flat(channel)) & set(flat(x.axes[1])):
        channel = atoms.twin(channel)
    places = []
    for i in range(n):
        same = sizes[i] == x.shape[2 + i] and stride[i] == 1 and len(flat(x.axes[2 + i])) == 1
        places.append(x.axes[2 + i] if same else atoms.axis(sizes[i]))
    reach = [
        max(x.shape[2 + i] + 2 * padding[i], (sizes[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1)
        for i in range(n)
    ]
    wide = [atoms.axis(size) for size in reach]
    target = [channel, *weight.axes[1:]]
    g.registered([x.axes[0], x.axes[1], *wide])
    g.registered([x.axes[0], x.axes[1], *places])

    def build(b):
        v, w = b.get(x), b.get(weight, target)
        for i in range(n):
            v, name = b.joined(v, flat(x.axes[2 + i]))
            v = b.pad(v, name, wide[i], padding[i])
        total = None
        for at in itertools.product(*[range(k) for k in kernel]):
            y, k = v, w
            for i, j in enumerate(at):
                k = b.index(k, weight.axes[2 + i], j)
                y = b.slice(y, b.whole(wide[i]), places[i], j * dilation[i], stride[i])
            term = b.op("mul", y, k) if depthwise else b.product(y, k, flat(x.axes[1]))
            total = term if total is None else b.op("add", total, term)
        return total

    return g.new([x.axes[0], channel, *places], build)


@rule("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def upsample_nearest(g, x, *_, **__):
    out = list(x.axes[:2])
    for axis, before, after in zip(x.axes[2:], x.shape[2:], g.shape[2:]):
        if after % before:
            raise Refusal(f"upsampling of {before} to {after}", "a whole factor")
        out.append(list(axis) + atoms.axis(after // before))
    return g.new(out, lambda b: b.get(x))


def _pooled(g, x, kernel, stride, padding, kind):
    n = len(x.shape) - 2
    kernel = _pair(kernel, n)
    stride = _pair(stride, n) if stride else kernel
    if stride != kernel or any(_pair(padding, n)) or any(s % k for s, k in zip(x.shape[2:], kernel)):
        raise Refusal("a pool whose windows overlap or reach beyond the edge", "use a stride that is the window's size")
    cuts = [cut(axis, size) for axis, size in zip(x.axes[2:], g.shape[2:])]
    gone = [rest for _, rest in cuts]
    out = list(x.axes[:2]) + [leading for leading, _ in cuts]
    return g.new(out, lambda b: b.reduce(kind, b.get(x), [a for axis in gone for a in flat(axis)]))


@rule("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(g, x, kernel, stride=None, padding=0, *_):
    return _pooled(g, x, kernel, stride, padding, "max")


@rule("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(g, x, kernel, stride=None, padding=0, *_):
    return _pooled(g, x, kernel, stride, padding, "mean")


@rule("aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d")
def adaptive_avg_pool(g, x, size):
    if all(s == 1 for s in g.shape[2:]):
        return g.reduced(lambda b, v, gone: b.reduce("mean", v, gone), x, list(range(2, len(x.shape))), True)
    if any(s % t for s, t in zip(x.shape[2:], g.shape[2:])):
        raise Refusal(f"an adaptive pool of {x.shape[2:]} to {g.shape[2:]}", "whole factors")
    return _pooled(g, x, [s // t for s, t in zip(x.shape[2:], g.shape[2:])], None, 0, "mean")


@rule("aten.group_norm")
def group_norm(g, x, groups, weight=None, bias=None, eps=1e-5, *_):
    _, rest = cut(x.axes[1], groups)
    for vector in (weight, bias):
        if vector is not None:
            unify(vector.axes[0], x.axes[1])

    def build(b):
        over = [a for axis in [rest, *x.axes[2:]] for a in flat(axis)]
        v = b.broadcast(b.get(x), [b.name(a) for a in over])
        return scaled(b, normalised(b, v, over, eps), weight, bias, [x.axes[1]])

    return g.new(x.axes, build, register=False)


@rule("aten.instance_norm")
def instance_norm(g, x, weight, bias, mean, var, use_input, momentum, eps, *_):
    return group_norm(g, x, x.shape[1], weight, bias, eps)


def _running(g, x):
    """A buffer that training changes: a state, under the buffer's name."""
    _, name, value = g.exported.state[x.node]
    x.parameter, x.leaf = name, value
    x.build = lambda b: b.state(name, x)


@rule("aten.batch_norm")
def batch_norm(g, x, weight, bias, mean, var, training, momentum, eps, *_):
    for vector in (weight, bias, mean, var):
        if vector is not None:
            unify(vector.axes[0], x.axes[1])
    of = [x.axes[1]]
    if mean is not None:
        _running(g, mean)
        _running(g, var)

    def build(b):
        v = b.get(x)
        if not training:
            c = b.op("sub", v, b.get(mean, of))
            y = b.op("mul", c, b.op("rsqrt", b.op("add", b.get(var, of), float(eps))))
            return scaled(b, y, weight, bias, of)
        over = [a for axis in [x.axes[0], *x.axes[2:]] for a in flat(axis)]
        v = b.broadcast(v, [b.name(a) for a in over])
        if mean is not None:
            seen = b.reduce("mean", v, over)
            squares = b.reduce("sum", b.op("square", b.op("sub", v, seen)), over)
            places = atoms.size_of([a for axis in x.axes[2:] for a in flat(axis)])
            others = b.op("sub", b.op("mul", b.rows_count(), float(places)), 1.0)
            b.observe(b.get(mean), seen, momentum)
            b.observe(b.get(var), b.op("div", squares, others), momentum)
        return scaled(b, normalised(b, v, over, eps), weight, bias, of)

    if training and mean is not None and momentum is None:
        raise Refusal("batch norm without momentum, a mean of all steps", "give momentum, e.g. 0.1")
    return g.new(x.axes, build, register=False)
