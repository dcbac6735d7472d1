"""One line per op that has a rule: loss and gradients are PyTorch's in f64, and cutting a step in three changes neither.

A line gets s with parameters, h {rows 8 6}, p {rows 3 8 6} which parameters have a part in, and ids {rows 8}."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import stretto
from stretto.torch import known_rules
from stretto.torch import imports  # noqa: F401  the table of rules
from stretto.torch.export import exported
from stretto.torch.rules import name_of

ROWS = 6
A = torch.ops.aten
LINES = {
    "aten.abs": lambda s, h, p, ids: h.abs(),
    "aten.adaptive_avg_pool1d": lambda s, h, p, ids: F.adaptive_avg_pool1d(h, 4),
    "aten.adaptive_avg_pool2d": lambda s, h, p, ids: F.adaptive_avg_pool2d(p, (4, 3)),
    "aten.adaptive_avg_pool3d": lambda s, h, p, ids: F.adaptive_avg_pool3d(p[:, None], (3, 1, 2)),
    "aten.adaptive_max_pool1d": lambda s, h, p, ids: F.adaptive_max_pool1d(h, 3),
    "aten.adaptive_max_pool2d": lambda s, h, p, ids: F.adaptive_max_pool2d(p, (4, 1)),
    "aten.adaptive_max_pool3d": lambda s, h, p, ids: F.adaptive_max_pool3d(p[:, None], (1, 2, 3)),
    "aten.add": lambda s, h, p, ids: h + s.v + torch.add(h, h, alpha=2),
    "aten.addmm": lambda s, h, p, ids: torch.addmm(s.b, h[:, 0], s.w.t()),
    "aten.alias": lambda s, h, p, ids: A.alias(h),
    "aten.amax": lambda s, h, p, ids: h.amax(1),
    "aten.amin": lambda s, h, p, ids: h.amin(-1),
    "aten.avg_pool1d": lambda s, h, p, ids: F.avg_pool1d(h, 2),
    "aten.avg_pool2d": lambda s, h, p, ids: F.avg_pool2d(p, 3, 2, 1),
    "aten.avg_pool3d": lambda s, h, p, ids: F.avg_pool3d(p[:, None], (1, 3, 2), divisor_override=5),
    "aten.baddbmm": lambda s, h, p, ids: torch.baddbmm(p[:, 0, :, :1], h, h.transpose(1, 2)),
    "aten.batch_norm": lambda s, h, p, ids: F.batch_norm(p, s.mean, s.variance, s.v[:3], s.v[3:], training=False),
    "aten.binary_cross_entropy_with_logits": lambda s, h, p, ids:
        F.binary_cross_entropy_with_logits(h, p[:, 0].detach().sigmoid(), reduction="none"),
    "aten.bmm": lambda s, h, p, ids: torch.bmm(h, p[:, 0].transpose(1, 2)),
    "aten.broadcast_tensors": lambda s, h, p, ids: sum(torch.broadcast_tensors(h, s.v)),
    "aten.broadcast_to": lambda s, h, p, ids: h + s.v.broadcast_to(8, 6),
    "aten.cat": lambda s, h, p, ids: torch.cat([h, p[:, 1], h[:, :3]], 1),
    "aten.chunk": lambda s, h, p, ids: torch.mul(*h.chunk(2, 1)),
    "aten.clamp": lambda s, h, p, ids: h.clamp(-0.3, 0.4),
    "aten.clamp_max": lambda s, h, p, ids: h.clamp_max(0.2),
    "aten.clamp_min": lambda s, h, p, ids: h.clamp_min(0.2),
    "aten.clone": lambda s, h, p, ids: h.clone(),
    "aten.contiguous": lambda s, h, p, ids: h.transpose(1, 2).contiguous(),
    "aten.conv1d": lambda s, h, p, ids: F.conv1d(h, s.k.view(3, 8, 3), s.b[:3], stride=2, padding=2, dilation=2),
    "aten.conv2d": lambda s, h, p, ids: F.conv2d(p, s.k.view(4, 3, 2, 3), s.b[:4], stride=(2, 1), padding=(0, 1)),
    "aten.conv3d": lambda s, h, p, ids: F.conv3d(p[:, None], s.k.view(4, 1, 3, 2, 3), padding=1),
    "aten.conv_transpose1d": lambda s, h, p, ids: F.conv_transpose1d(h, s.k.view(8, 3, 3), s.b[:3], stride=2, padding=1),
    "aten.conv_transpose2d": lambda s, h, p, ids:
        F.conv_transpose2d(p, s.k.view(3, 4, 3, 2), s.b[:4], stride=2, output_padding=1, dilation=2),
    "aten.conv_transpose3d": lambda s, h, p, ids: F.conv_transpose3d(p[:, None], s.k.view(1, 2, 3, 2, 6)),
    "aten.cos": lambda s, h, p, ids: h.cos(),
    "aten.cross_entropy_loss": lambda s, h, p, ids:
        F.cross_entropy(h.transpose(1, 2), ids, reduction="none", ignore_index=2),
    "aten.cumsum": lambda s, h, p, ids: h.cumsum(1),
    "aten.detach": lambda s, h, p, ids: h * h.detach(),
    "aten.div": lambda s, h, p, ids: h / (p[:, 0].abs() + 1),
    "aten.dot": lambda s, h, p, ids: h * torch.dot(s.v, s.v),
    "aten.dropout": lambda s, h, p, ids: F.dropout(h, 0.5, training=False),
    "aten.elu": lambda s, h, p, ids: F.elu(h, 0.7) + F.selu(h),
    "aten.embedding": lambda s, h, p, ids: F.embedding(ids, s.w.t(), padding_idx=1),
    "aten.eq": lambda s, h, p, ids: h * (h == p[:, 0]) + h,
    "aten.erf": lambda s, h, p, ids: h.erf(),
    "aten.exp": lambda s, h, p, ids: h.exp(),
    "aten.expand": lambda s, h, p, ids: h[:, :, None].expand(-1, -1, 3, -1),
    "aten.expand_as": lambda s, h, p, ids: h + s.v.expand_as(h),
    "aten.expm1": lambda s, h, p, ids: h.expm1(),
    "aten.flatten": lambda s, h, p, ids: h.flatten(1),
    "aten.flip": lambda s, h, p, ids: h.flip(1, 2) + h,
    "aten.gather": lambda s, h, p, ids: h.gather(2, ids[..., None] % 6),
    "aten.ge": lambda s, h, p, ids: torch.where(h >= 0, h, p[:, 0]),
    "aten.gelu": lambda s, h, p, ids: F.gelu(h) + F.gelu(h, approximate="tanh"),
    "aten.group_norm": lambda s, h, p, ids: F.group_norm(h, 2, torch.cat([s.v, s.v[:2]])),
    "aten.gt": lambda s, h, p, ids: torch.where(h > p[:, 0], h, p[:, 0]),
    "aten.hardtanh": lambda s, h, p, ids: F.hardtanh(h),
    "aten.im2col": lambda s, h, p, ids: F.unfold(p, (3, 2), padding=1, stride=2),
    "aten.index": lambda s, h, p, ids: s.w[ids % 5],
    "aten.index_select": lambda s, h, p, ids: s.w.index_select(0, torch.tensor([3, 1, 1])).sum(0) + h,
    "aten.instance_norm": lambda s, h, p, ids: F.instance_norm(p, weight=s.v[:3], bias=s.v[3:]),
    "aten.l1_loss": lambda s, h, p, ids: F.l1_loss(h, p[:, 0], reduction="none"),
    "aten.layer_norm": lambda s, h, p, ids: F.layer_norm(h, (6,), s.v, s.v) + F.layer_norm(h, (8, 6)),
    "aten.le": lambda s, h, p, ids: torch.where(h <= 0, h, p[:, 0]),
    "aten.leaky_relu": lambda s, h, p, ids: F.leaky_relu(h, 0.2),
    "aten.linalg_vector_norm": lambda s, h, p, ids: torch.linalg.vector_norm(h, dim=-1),
    "aten.linear": lambda s, h, p, ids: F.linear(h, s.w, s.b),
    "aten.log": lambda s, h, p, ids: (h.abs() + 1).log(),
    "aten.log1p": lambda s, h, p, ids: h.abs().log1p(),
    "aten.log_sigmoid": lambda s, h, p, ids: F.logsigmoid(h),
    "aten.log_softmax": lambda s, h, p, ids: F.log_softmax(h, -1),
    "aten.logical_not": lambda s, h, p, ids: torch.where(torch.logical_not(h > 0), h, 0.0),
    "aten.logsumexp": lambda s, h, p, ids: h.logsumexp(1),
    "aten.lt": lambda s, h, p, ids: torch.where(h < 0, h, p[:, 0]),
    "aten.masked_fill": lambda s, h, p, ids: h.masked_fill(ids[..., None] == 3, float("-inf")).softmax(1),
    "aten.matmul": lambda s, h, p, ids: h @ p[:, 1].transpose(1, 2) @ h,
    "aten.max": lambda s, h, p, ids: h.max(1).values + torch.max(h, p[:, 0]).sum(1),
    "aten.max_pool1d": lambda s, h, p, ids: F.max_pool1d(h, 2),
    "aten.max_pool2d": lambda s, h, p, ids: F.max_pool2d(p, 3, 2, 1),
    "aten.max_pool3d": lambda s, h, p, ids: F.max_pool3d(p[:, None], (1, 2, 3), 1),
    "aten.maximum": lambda s, h, p, ids: torch.maximum(h, p[:, 0]),
    "aten.mean": lambda s, h, p, ids: h - h.mean(1, keepdim=True),
    "aten.min": lambda s, h, p, ids: h.min(2, keepdim=True)[0] + torch.min(h, p[:, 0]),
    "aten.minimum": lambda s, h, p, ids: torch.minimum(h, p[:, 0]),
    "aten.mm": lambda s, h, p, ids: torch.mm(h[:, 0], s.w.t()),
    "aten.movedim": lambda s, h, p, ids: p.movedim(1, 3),
    "aten.mse_loss": lambda s, h, p, ids: F.mse_loss(h, p[:, 0], reduction="none"),
    "aten.mul": lambda s, h, p, ids: h * p[:, 0] * 0.5,
    "aten.mv": lambda s, h, p, ids: torch.mv(h[:, 0], s.v),
    "aten.narrow": lambda s, h, p, ids: h.narrow(1, 2, 5),
    "aten.ne": lambda s, h, p, ids: h * torch.where(h != 0, h, p[:, 0]),
    "aten.neg": lambda s, h, p, ids: -h,
    "aten.pad": lambda s, h, p, ids: F.pad(h, (1, 2, 3, 0)),
    "aten.permute": lambda s, h, p, ids: p.permute(0, 3, 1, 2),
    "aten.pow": lambda s, h, p, ids: h.pow(5) + (h.abs() + 1).pow(-1.5) + 2.0 ** h + (h.abs() + 1) ** -2,
    "aten.reciprocal": lambda s, h, p, ids: (h.abs() + 1).reciprocal(),
    "aten.relu": lambda s, h, p, ids: h.relu(),
    "aten.repeat": lambda s, h, p, ids: h.repeat(1, 2, 3),
    "aten.repeat_interleave": lambda s, h, p, ids: h.repeat_interleave(2, 1),
    "aten.reshape": lambda s, h, p, ids: h.reshape(h.shape[0], 4, 12) + h.reshape(h.shape[0], 12, 4).transpose(1, 2),
    "aten.rms_norm": lambda s, h, p, ids: F.rms_norm(h, (6,), s.v, 1e-5),
    "aten.roll": lambda s, h, p, ids: h.roll(3, 1) + h,
    "aten.rsqrt": lambda s, h, p, ids: (h.abs() + 1).rsqrt(),
    "aten.rsub": lambda s, h, p, ids: 1.0 - h,
    "aten.scaled_dot_product_attention": lambda s, h, p, ids: F.scaled_dot_product_attention(p, p, p, is_causal=True),
    "aten.select": lambda s, h, p, ids: h.select(1, 3),
    "aten.sigmoid": lambda s, h, p, ids: h.sigmoid(),
    "aten.sign": lambda s, h, p, ids: h * h.sign(),
    "aten.silu": lambda s, h, p, ids: F.silu(h),
    "aten.sin": lambda s, h, p, ids: h.sin(),
    "aten.slice": lambda s, h, p, ids: h[:, 1::3, :4],
    "aten.softmax": lambda s, h, p, ids: h.softmax(1),
    "aten.softplus": lambda s, h, p, ids: F.softplus(h, 2.0),
    "aten.split": lambda s, h, p, ids: sum(q.sum(2) for q in h.split(4, 2)),
    "aten.split_with_sizes": lambda s, h, p, ids: torch.mul(*A.split_with_sizes(h, [4, 4], 1)),
    "aten.sqrt": lambda s, h, p, ids: (h * h + 1).sqrt(),
    "aten.square": lambda s, h, p, ids: h.square(),
    "aten.squeeze": lambda s, h, p, ids: h[:, 3:4].squeeze(1),
    "aten.stack": lambda s, h, p, ids: torch.stack([h, p[:, 0]], 2),
    "aten.sub": lambda s, h, p, ids: h - p[:, 0],
    "aten.sum": lambda s, h, p, ids: h.sum((1, 2)),
    "aten.t": lambda s, h, p, ids: h @ s.w.t(),
    "aten.tanh": lambda s, h, p, ids: h.tanh(),
    "aten.to": lambda s, h, p, ids: h.to(torch.float64) * (h > 0).to(h.dtype),
    "aten.topk": lambda s, h, p, ids: h.topk(2, -1)[0],
    "aten.transpose": lambda s, h, p, ids: h.transpose(1, 2),
    "aten.type_as": lambda s, h, p, ids: h.type_as(p),
    "aten.unbind": lambda s, h, p, ids: torch.mul(*p.unbind(1)[:2]),
    "aten.unflatten": lambda s, h, p, ids: h.unflatten(2, (2, 3)),
    "aten.unfold": lambda s, h, p, ids: h.unfold(1, 3, 2),
    "aten.unsqueeze": lambda s, h, p, ids: h.unsqueeze(2) * p.transpose(1, 2),
    "aten.upsample_bilinear2d": lambda s, h, p, ids: F.interpolate(p, scale_factor=2, mode="bilinear"),
    "aten.upsample_linear1d": lambda s, h, p, ids: F.interpolate(h, size=11, mode="linear", align_corners=True),
    "aten.upsample_nearest1d": lambda s, h, p, ids: F.interpolate(h, scale_factor=2),
    "aten.upsample_nearest2d": lambda s, h, p, ids: F.interpolate(p, scale_factor=2),
    "aten.upsample_nearest3d": lambda s, h, p, ids: F.interpolate(p[:, None], scale_factor=2),
    "aten.upsample_trilinear3d": lambda s, h, p, ids: F.interpolate(p[:, None], size=(3, 4, 9), mode="trilinear"),
    "aten.var": lambda s, h, p, ids: h.var(1) + h.var(1, unbiased=False),
    "aten.view": lambda s, h, p, ids: h.view(h.shape[0], 4, 2, 6),
    "aten.view_as": lambda s, h, p, ids: h.view_as(p[:, 0]),
    "aten.xlogy": lambda s, h, p, ids: torch.xlogy(h.relu(), p[:, 0].abs() + 1),
    "aten.where": lambda s, h, p, ids: torch.where(h > 0, h, p[:, 0]),
}
# Ops without a rule of their own, which PyTorch writes in those that have one.
WRITTEN_OUT = {
    "cosine_similarity": lambda s, h, p, ids: F.cosine_similarity(h, p[:, 0], dim=-1),
    "cross entropy of probabilities": lambda s, h, p, ids: F.cross_entropy(h[:, 0], p[:, 0, 0].detach().softmax(-1)),
    "cross entropy with smoothing": lambda s, h, p, ids: F.cross_entropy(h[:, 0], ids[:, 0], label_smoothing=0.1),
    "cross entropy with weights": lambda s, h, p, ids: F.cross_entropy(h[:, 0], ids[:, 0], weight=torch.arange(6.0, dtype=h.dtype)),
    "einsum": lambda s, h, p, ids: torch.einsum("bij,bkij,ck->bic", h, p, s.w[:, :3]),
    "glu": lambda s, h, p, ids: F.glu(h),
    "gru": lambda s, h, p, ids: s.gru(h)[0],
    "hardswish": lambda s, h, p, ids: F.hardswish(h * 4),
    "huber": lambda s, h, p, ids: F.huber_loss(h, p[:, 0], delta=0.3),
    "kl_div": lambda s, h, p, ids: F.kl_div(F.log_softmax(h, -1), p[:, 0].detach().softmax(-1), reduction="batchmean"),
    "lstm": lambda s, h, p, ids: s.lstm(h)[0],
    "mish": lambda s, h, p, ids: F.mish(h),
    "mean of what a mask shows": lambda s, h, p, ids: (h.sum(-1) * (ids > 1)).sum() / (ids > 1).sum().clamp(min=1),
    "MultiheadAttention": lambda s, h, p, ids: s.attention(h, h, h)[0],
    "nll_loss": lambda s, h, p, ids: F.nll_loss(F.log_softmax(h[:, 0], -1), ids[:, 0]),
    "pixel_shuffle": lambda s, h, p, ids: F.pixel_shuffle(h.view(h.shape[0], 4, 2, 6), 2),
    "prelu": lambda s, h, p, ids: F.prelu(p, s.v[:3]),
    "smooth_l1_loss": lambda s, h, p, ids: F.smooth_l1_loss(h, p[:, 0]),
    "std": lambda s, h, p, ids: h.std(-1),
}
# Other names of the same functions, which some versions of PyTorch write; ops that are refused; losses and experts,
# which refusals_test and the zoo have.
ELSEWHERE = {"aten._grouped_mm", "aten._local_scalar_dense", "aten._log_softmax", "aten._reshape_alias", "aten._softmax",
             "aten._to_copy", "aten._unique2", "aten._unsafe_view", "aten.adjoint", "aten.bincount", "aten.bitwise_not",
             "aten.constant_pad_nd", "aten.convolution", "aten.detach_", "aten.item", "aten.lift_fresh",
             "aten.lift_fresh_copy", "aten.log_sigmoid_forward", "aten.mT", "aten.masked_select", "aten.native_dropout",
             "aten.nonzero", "aten.numpy_T", "aten.ravel", "aten.true_divide"}


class Line(nn.Module):
    def __init__(self, function):
        super().__init__()
        torch.manual_seed(3)
        self.function = function
        for name, sizes in {"a": (8, 6), "i": (3, 8, 6), "w": (5, 6), "b": (5,), "v": (6,), "k": (72,)}.items():
            self.register_parameter(name, nn.Parameter(torch.randn(sizes)))
        self.register_buffer("mean", torch.randn(3))
        self.register_buffer("variance", torch.rand(3) + 0.5)
        self.gru, self.lstm = nn.GRU(6, 4, batch_first=True), nn.LSTM(6, 4, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x, y, ids):
        made = self.function(self, x * self.a, y * self.i, ids)
        return (made * made + made).mean() if made.dim() else made


def made(function):
    module = Line(function).double()
    batch = {"x": torch.randn(ROWS, 8, 6).double(), "y": torch.randn(ROWS, 3, 8, 6).double()}
    return module, batch | {"ids": torch.randint(0, 6, (ROWS, 8))}


class Ops(unittest.TestCase):
    def equal(self, function):
        module, batch = made(function)
        model = stretto.from_torch(module, batch, check=True)
        self.assertIsNone(model.one_microbatch or None)
        found = []
        for microbatches in (1, 3):
            with stretto.Trainer(model, train={"microbatches": microbatches}) as trainer:
                loss = trainer.step(**batch).loss
                found.append([loss, *(trainer.gradient(p.key) for p in model.parameters.values() if p.trained)])
        for one, three in zip(*found):
            np.testing.assert_allclose(one, three, rtol=1e-9, atol=1e-12)

    def test_every_line_is_what_pytorch_computes(self):
        for name, function in LINES.items():
            with self.subTest(name):
                self.equal(function)
                module, batch = made(function)
                self.assertIn(name, {name_of(n.target) for n in exported(module, batch).nodes if n.op == "call_function"})

    def test_ops_that_pytorch_writes_out(self):
        for name, function in WRITTEN_OUT.items():
            with self.subTest(name):
                self.equal(function)

    def test_every_rule_has_a_line(self):
        inplace = {name for name in known_rules() if name.endswith("_") and name != "aten.detach_"}
        self.assertEqual(set(LINES) | ELSEWHERE, {n for n in known_rules() if n.startswith("aten.")} - inplace)


if __name__ == "__main__":
    unittest.main()
