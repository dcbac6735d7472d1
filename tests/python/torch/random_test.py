"""Random modules out of ops of the table, with views, squares, residuals and broadcasts: equal to PyTorch in f64, and
under a random layout. STRETTO_RANDOM_MODULES: how many (300)."""

import math
import os
import random
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import stretto
from stretto.torch.export import exported
from stretto.torch.reference import loss_and_gradients

ROWS, MOST = 6, 20_000


class Random(nn.Module):
    """A plan of ops with their arguments, over the shape that they lead to."""

    def __init__(self, seed):
        super().__init__()
        self.random, self.plan, self.weights = random.Random(seed), [], nn.ParameterList()
        self.shape = [ROWS, self.random.choice([4, 6, 8]), self.random.choice([4, 8, 12])]
        self.first = tuple(self.shape)
        self.add("linear")
        for _ in range(self.random.randint(3, 8)):
            self.add(self.random.choice(self.choices()))
        del self.random

    def choices(self):
        s = self.shape
        found = ["linear", "square", "scale", "softmax", "gelu", "norm", "cat", "where", "power", "bias"]
        if len(s) > 2:
            found += ["transpose", "merge", "attention", "mean_out"]
        if len(s) < 5 and any(n % 2 == 0 and n > 2 for n in s[1:]):
            found += ["cut", "cut", "chunk", "slice"]
        if len(s) > 2 and s[-1] == s[-2]:
            found += ["symmetric"] * 3
        if len(s) < 5 and math.prod(s) * s[-1] < MOST // 4:
            found.append("outer")
        return found

    def weight(self, *sizes):
        self.weights.append(nn.Parameter(torch.randn(*sizes) * 0.4))
        return len(self.weights) - 1

    def add(self, op):
        r, s = self.random, self.shape
        axis = r.randrange(1, len(s))
        arguments = (axis,)
        if op == "linear":
            out = r.choice([4, 6, 8, s[-1]])
            arguments = (self.weight(out, s[-1]), self.weight(out))
            s[-1] = out
        elif op == "square":
            arguments = (self.weight(s[-1], s[-1]),)
        elif op == "norm":
            arguments = (self.weight(s[-1]), self.weight(s[-1]))
        elif op == "bias":
            arguments = (self.weight(*s[axis:]),)
        elif op == "transpose":
            arguments = tuple(r.sample(range(1, len(s)), 2))
            i, j = arguments
            s[i], s[j] = s[j], s[i]
        elif op == "merge":
            i = r.randrange(1, len(s) - 1)
            s[i:i + 2] = [s[i] * s[i + 1]]
            arguments = tuple(s[1:])
        elif op == "cut":
            i = r.choice([i for i in range(1, len(s)) if s[i] % 2 == 0 and s[i] > 2])
            s[i:i + 1] = r.choice([[2, s[i] // 2], [s[i] // 2, 2]])
            arguments = tuple(s[1:])
        elif op in ("chunk", "slice"):
            even = [i for i in range(1, len(s)) if s[i] % 2 == 0 and s[i] > 2]
            if not even:
                return
            arguments = (r.choice(even),)
            s[arguments[0]] //= 2
        elif op == "cat":
            s[axis] *= 2
        elif op == "outer":
            s.append(s[-1])
        elif op == "mean_out":
            del s[axis]
        if math.prod(s) > MOST:
            raise OverflowError
        self.plan.append((op, arguments))

    def forward(self, x, y):
        for op, arguments in self.plan:
            x = getattr(self, op)(x, *arguments)
        return (x.flatten(1).mean(1) - y).square().mean()

    def linear(self, x, w, b):
        return F.linear(x, self.weights[w], self.weights[b])

    def square(self, x, w):
        return x + torch.tanh(F.linear(x, self.weights[w]))

    def norm(self, x, w, b):
        return F.layer_norm(x, x.shape[-1:], self.weights[w], self.weights[b])

    def bias(self, x, w):
        return x + self.weights[w]

    def scale(self, x, axis):
        return x * x.mean(axis, keepdim=True)

    def softmax(self, x, axis):
        return F.softmax(x, axis)

    def gelu(self, x, axis):
        return F.gelu(x)

    def power(self, x, axis):
        return x.pow(3) * 0.1 + torch.sqrt(x * x + 1)

    def where(self, x, axis):
        return torch.where(x > 0, x, x.exp().clamp(max=2) - 1)

    def cat(self, x, axis):
        return torch.cat([x, torch.tanh(x)], axis)

    def transpose(self, x, i, j):
        return x.transpose(i, j)

    def merge(self, x, *sizes):
        return x.reshape(x.shape[0], *sizes)

    cut = merge

    def chunk(self, x, axis):
        a, b = x.chunk(2, axis)
        return a * torch.sigmoid(b)

    def slice(self, x, axis):
        half = x.shape[axis] // 2
        return x.narrow(axis, 0, half) - x.narrow(axis, x.shape[axis] - half, half) * 0.5

    def attention(self, x, axis):
        return F.softmax(x @ x.transpose(-1, -2) / 3, -1) @ x

    def symmetric(self, x, axis):
        return x + x.transpose(-1, -2)

    def outer(self, x, axis):
        return x.unsqueeze(-1) * x.unsqueeze(-2) * 0.5

    def mean_out(self, x, axis):
        return x.mean(axis)


def made(seed):
    torch.manual_seed(seed)
    module = Random(seed).double()
    return module, {"x": torch.randn(*module.first, dtype=torch.float64), "y": torch.randn(ROWS, dtype=torch.float64)}


def layout_of(model, seed):
    """A dim of some parameter over an axis that divides it, or rows over ranks."""
    r = random.Random(seed)
    sizes = {d["name"]: d["size"] for d in model.graph["dims"]}
    names = sorted({d for p in model.parameters.values() for d in p.dims if sizes[d] % 2 == 0})
    if not names or r.random() < 0.3:
        return {"data": 2}
    return {"mesh": {"x": 2}, "layout": {r.choice(names): "x"}}


class Modules(unittest.TestCase):
    def test_random_modules(self):
        refused = 0
        count = int(os.environ.get("STRETTO_RANDOM_MODULES", "300"))
        for seed in range(count):
            try:
                module, batch = made(seed)
            except OverflowError:
                continue
            with self.subTest(seed=seed, plan=[op for op, _ in module.plan]):
                try:
                    program = exported(module, batch)
                    model = stretto.from_torch(module, batch, check=False)
                except stretto.Error as e:
                    self.assertIn("no common factors", str(e))
                    refused += 1
                    continue
                self.equal(program, model, {})
                try:
                    self.equal(program, model, layout_of(model, seed))
                except stretto.Error as e:
                    self.assertTrue(e.hint, e)
        self.assertLess(refused, 0.05 * count)

    def equal(self, program, model, parallel):
        loss, gradients = loss_and_gradients(program)
        with stretto.Trainer(model, train={"dtype": "f64"}, parallel=parallel) as trainer:
            ours = trainer.step(**model.example).loss
            found = {p.key: trainer.gradient(p.key) for p in model.parameters.values()}
        self.assertLess(abs(ours - loss), 1e-12 * abs(loss) + 1e-15)
        for key, theirs in gradients.items():  # what is nothing but rounding is so in both
            apart, largest = np.abs(found[key] - theirs.numpy()).max(), float(theirs.abs().max())
            self.assertLess(apart, 1e-9 * largest + 1e-13, key)


if __name__ == "__main__":
    unittest.main()
