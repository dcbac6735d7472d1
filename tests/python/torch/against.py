"""What training is held against: PyTorch's own steps in f64, on the exported graph, whose casts to f32 count as f64."""

import dataclasses

import numpy as np
import torch

from stretto.torch.export import exported
from stretto.torch.reference import loss_and_gradients

import zoo

STEPS = 10


def batches(name, count=STEPS):
    """Different ones, the first as the module was imported with."""
    return [zoo.make(name, seed=seed)[1] for seed in range(1, count + 1)]


def adamw(module):
    """Two groups, of vectors and of all else."""
    of = lambda wanted: [p for p in module.parameters() if p.requires_grad and (p.dim() < 2) == wanted]
    groups = [{"params": of(False), "weight_decay": 0.1}, {"params": of(True), "weight_decay": 0.0, "lr": 5e-4}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=1e-3, betas=(0.9, 0.99))


def sgd(module):
    of = [p for p in module.parameters() if p.requires_grad]
    return torch.optim.SGD(of, lr=1e-2, momentum=0.9, nesterov=True, weight_decay=0.01)


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


def torch_steps(name, make_optimizer):
    """(losses, {key: parameter after them}, state of the optimizer)."""
    module, batch = zoo.make(name)
    program = exported(module, batch)
    own = dict(module.named_parameters(remove_duplicate=False))
    optimizer = make_optimizer(module)
    scheduler, losses = cosine(optimizer), []
    for given in batches(name):
        loss, gradients = loss_and_gradients(dataclasses.replace(program, batch=given))
        losses.append(loss)
        optimizer.zero_grad()
        for key, gradient in gradients.items():
            own[key].grad = gradient if own[key].grad is None else own[key].grad + gradient
        optimizer.step()
        scheduler.step()
    return losses, {key: p.detach().numpy().copy() for key, p in own.items()}, optimizer.state_dict()


def worst(ours, theirs, apart=()):
    """Relative to the largest element of a tensor; its name."""
    found = (0.0, "")
    for key, value in theirs.items():
        if key in ours and key not in apart:
            scale = max(np.abs(value).max(initial=0), 1e-3)
            found = max(found, (float(np.abs(np.asarray(ours[key]) - value).max(initial=0) / scale), key))
    return found
