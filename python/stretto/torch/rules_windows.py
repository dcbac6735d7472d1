"""Convolutions, pools and norms over images. Windows that do not overlap are parts of axes; others are unfolded."""

import math

import numpy as np
import torch

from . import atoms
from .atoms import cut, flat, unify
from .rules import Refusal, rule
from .rules_pointwise import no_places
from .rules_products import mapped, normalised, scaled


def _pair(x, n):
    return (
        list(x) if isinstance(x, (list, tuple)) and len(x) == n else [x[0] if isinstance(x, (list, tuple)) else x] * n
    )


def _windows(g, x, kernel, stride, padding, dilation, outside=0.0):
    """x under the axes [rows, channels, places, taps, places, taps, ...], and its places and taps. outside: what stands
    beyond the edges."""
    places, taps, steps = [], [], []
    for axis, size, k, s, p, d in zip(x.axes[2:], x.shape[2:], kernel, stride, padding, dilation):
        n = (size + 2 * p - d * (k - 1) - 1) // s + 1
        if s == k and p == 0 and d == 1 and size == n * k:
            leading, rest = cut(axis, n)
            steps.append(None)
        else:
            same = n == size and len(flat(axis)) == 1
            leading, rest = (axis if same else atoms.axis(n)), atoms.axis(k)
            steps.append((s, d, p, atoms.axis(size + 2 * p) if p else axis))
            g.registered([x.axes[0], x.axes[1], *places, *taps, steps[-1][-1], *x.axes[3 + len(places) :]])
        places.append(leading)
        taps.append(rest)

    def build(b):
        v = b.get(x)
        for i, step in enumerate(steps):
            if step is None:
                continue
            s, d, p, wide = step
            v, name = b.joined(v, flat(x.axes[2 + i]))
            if p:
                v = b.pad(v, name, wide, p)
                name = b.whole(wide)
                if outside:
                    edge = np.full(x.shape[2 + i] + 2 * p, outside)
                    edge[p:-p] = 0
                    v = b.op("add", v, b.values([name], edge))
            v = b.windows(v, name, places[i], taps[i], (s, d))
        return v

    axes = [x.axes[0], x.axes[1], *(axis for pair in zip(places, taps) for axis in pair)]
    return g.new(axes, build, [atoms.size_of(axis) for axis in axes]), places, taps


def _same_padding(padding, kernel, dilation):
    if not isinstance(padding, str):
        return _pair(padding, len(kernel))
    return [0 if padding == "valid" else (k - 1) * d // 2 for k, d in zip(kernel, dilation)]


def _with_bias(g, y, bias):
    y.shape = tuple(g.shape)
    if bias is None:
        return y
    unify(bias.axes[0], y.axes[1])
    return g.new(y.axes, lambda b: b.op("add", b.get(y), b.get(bias, [y.axes[1]])), register=False)


def _product(g, x, weight, into, out, groups, taps, kept):
    """Sums over channels and taps, along groups. into, out: which axes of the weight are taken and made."""
    if groups == 1:
        over = [(x.axes[1], weight.axes[into]), *taps]
        return g.product(x, weight, over, [x.axes[0], weight.axes[out], *kept])
    mine, own = cut(x.axes[1], groups)
    theirs, rest = cut(weight.axes[0], groups)
    inner = weight.axes[1]
    made, taken = (rest, inner) if out == 0 else (inner, rest)
    of_x = [x.axes[0], mine, own, *x.axes[2:]]
    of_w = [theirs, made, taken, *weight.axes[2:]]
    y = g.product(
        x, weight, [(own, taken), *taps], [x.axes[0], mine, made, *kept], [(mine, theirs)], axes_a=of_x, axes_b=of_w
    )
    return g.same(y, [y.axes[0], list(y.axes[1]) + list(y.axes[2]), *y.axes[3:]], g.shape)


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.convolution")
def convolution(g, x, weight, bias=None, stride=1, padding=0, dilation=1, *rest):
    if len(rest) == 3 and rest[0]:
        return conv_transpose(g, x, weight, bias, stride, padding, rest[1], rest[2], dilation)
    n, kernel = len(x.shape) - 2, weight.shape[2:]
    stride, dilation = _pair(stride, n), _pair(dilation, n)
    windows, places, taps = _windows(g, x, kernel, stride, _same_padding(padding, kernel, dilation), dilation)
    groups = rest[-1] if rest else 1
    return _with_bias(g, _product(g, windows, weight, 1, 0, groups, list(zip(taps, weight.axes[2:])), places), bias)


@rule("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def conv_transpose(g, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Every element is spread over a window, and what meets is added up."""
    n, kernel, sizes = len(x.shape) - 2, weight.shape[2:], g.shape[2:]
    stride, padding, dilation = _pair(stride, n), _pair(padding, n), _pair(dilation, n)
    spread = _product(g, x, weight, 0, 1, groups, [], [*x.axes[2:], *weight.axes[2:]])
    reach = [(s - 1) * t + (k - 1) * d + 1 for s, t, k, d in zip(x.shape[2:], stride, kernel, dilation)]
    wide = [atoms.axis(max(r, p + size)) for r, p, size in zip(reach, padding, sizes)]
    places = [w if p == 0 and atoms.size_of(w) == s else atoms.axis(s) for w, p, s in zip(wide, padding, sizes)]

    def build(b):
        v = b.get(spread)
        for i in range(n):
            v = b.overlaid(v, spread.axes[2 + i], spread.axes[2 + n + i], wide[i], (stride[i], dilation[i]))
            if places[i] is not wide[i]:
                v = b.slice(v, b.whole(wide[i]), places[i], padding[i])
        return v

    for i in range(n):
        after = [*spread.axes[3 + i : 2 + n], *spread.axes[3 + n + i :]]
        g.registered([*spread.axes[:2], *places[:i], wide[i], *after])
    return _with_bias(g, g.new([*spread.axes[:2], *places], build), bias)


@rule("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def upsample_nearest(g, x, *_, **__):
    out = list(x.axes[:2])
    for axis, before, after in zip(x.axes[2:], x.shape[2:], g.shape[2:]):
        if after % before:
            raise Refusal(f"upsampling of {before} to {after}", "a whole factor")
        out.append(list(axis) + atoms.axis(after // before))
    return g.new(out, lambda b: b.get(x))


def _pooled(g, x, kernel, stride, padding, dilation, kind, outside=0.0):
    n = len(x.shape) - 2
    kernel = _pair(kernel, n)
    stride = _pair(stride, n) if stride else kernel
    windows, places, taps = _windows(g, x, kernel, stride, _pair(padding, n), _pair(dilation, n), outside)
    if [atoms.size_of(axis) for axis in places] != list(g.shape[2:]):
        raise Refusal("a pool whose last window reaches beyond the edge (ceil_mode)", "use ceil_mode=False")
    gone = [a for axis in taps for a in flat(axis)]
    return g.new([*x.axes[:2], *places], lambda b: b.reduce(kind, b.get(windows), gone))


@rule("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(g, x, kernel, stride=None, padding=0, dilation=1, *_):
    return _pooled(g, x, kernel, stride, padding, dilation, "max", -1e30)


@rule("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(g, x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    n = len(x.shape) - 2
    if not count_include_pad and any(_pair(padding, n)):
        raise Refusal("an average that leaves out what is padded", "use count_include_pad=True")
    y = _pooled(g, x, kernel, stride, padding, 1, "mean")
    if divisor_override is None:
        return y
    return g.pointwise(lambda b, v: b.op("mul", v, math.prod(_pair(kernel, n)) / divisor_override), y)


@rule("aten.unfold")
def unfold(g, x, dim, size, step):
    dim %= len(x.axes)
    place, tap = atoms.axis((x.shape[dim] - size) // step + 1), atoms.axis(size)
    axes = [place if i == dim else axis for i, axis in enumerate(x.axes)] + [tap]

    def build(b):
        v, name = b.joined(b.get(x), flat(x.axes[dim]))
        return b.windows(v, name, place, tap, (step, 1))

    return g.new(axes, build)


@rule("aten.im2col")
def im2col(g, x, kernel, dilation, padding, stride):
    windows, places, taps = _windows(g, x, kernel, stride, padding, dilation)
    joined = lambda axes: [a for axis in axes for a in axis]
    return g.same(windows, [x.axes[0], list(x.axes[1]) + joined(taps), joined(places)], g.shape)


@rule("aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d")
def upsample_linear(g, x, size, corners, *scales):
    scales = list(scales[0]) if scales and isinstance(scales[0], (list, tuple)) else list(scales)
    for i, after in enumerate(g.shape[2:]):
        of = torch.eye(x.shape[2 + i], dtype=torch.float64)[:, None]
        scale = scales[i] if i < len(scales) else None
        x = mapped(g, x, 2 + i, torch.ops.aten.upsample_linear1d(of, [after], corners, scale)[:, 0].T)
    return x


@rule("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def adaptive_max_pool(g, x, size):
    sizes = list(size) if isinstance(size, (list, tuple)) else [size]
    if any(s % t for s, t in zip(x.shape[2:], sizes)):
        raise Refusal(f"an adaptive pool of {x.shape[2:]} to {sizes}", "whole factors")
    cuts = [cut(axis, t) for axis, t in zip(x.axes[2:], sizes)]
    gone = [a for _, rest in cuts for a in flat(rest)]
    out = [*x.axes[:2], *(leading for leading, _ in cuts)]
    return [g.new(out, lambda b: b.reduce("max", b.get(x), gone), [*x.shape[:2], *sizes]), no_places(g, out)]


@rule("aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d")
def adaptive_avg_pool(g, x, size):
    if all(s == 1 for s in g.shape[2:]):
        return g.reduced(lambda b, v, gone: b.reduce("mean", v, gone), x, list(range(2, len(x.shape))), True)
    if not any(s % t for s, t in zip(x.shape[2:], g.shape[2:])):
        return _pooled(g, x, [s // t for s, t in zip(x.shape[2:], g.shape[2:])], None, 0, 1, "mean")
    for i, after in enumerate(g.shape[2:]):
        of = torch.eye(x.shape[2 + i], dtype=torch.float64)[:, None]
        x = mapped(g, x, 2 + i, torch.nn.functional.adaptive_avg_pool1d(of, after)[:, 0].T)
    return x


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
