"""First use compares: loss and gradients of the example batch, by Stretto and by PyTorch, both in f64."""

import copy
import math

import numpy as np

from .model import as_numpy, error_of
from .reference import loss_and_gradients

_tolerance = 1e-7
_tolerance_f32 = 1e-4  # tables that the module keeps in f32 (rotary positions) may be computed anew, in f64


def _without_dropout(graph):
    """The same graph, in which nothing drops out: the two draw other numbers."""
    graph = copy.copy(graph)
    graph["nodes"] = [{**n, "rate": 0.0} if n["op"] == "dropout" else n for n in graph["nodes"]]
    return graph


def differences(model, loss, gradients, program_loss, expected):
    """[(how much, what)]: relative to the largest element, the worst first."""
    scale = max(abs(program_loss), 1e-12)
    found = [(abs(loss - program_loss) / scale, "the loss")]
    largest = max((float(g.abs().max()) for g in expected.values()), default=0.0)
    for key, ours in gradients.items():
        if key in expected:
            theirs = as_numpy(expected[key], np.float64)
            scale = max(float(np.abs(theirs).max(initial=0)), 1e-6 * largest, 1e-300)
            found.append((float(np.abs(ours - theirs).max(initial=0)) / scale, key))
    return sorted(found, key=lambda f: -f[0] if math.isfinite(f[0]) else -math.inf)


def _trainer(model):
    from .trainer import ModuleTrainer

    return ModuleTrainer(model, optimizer={"name": "sgd"}, train={"dtype": "f64"})


def check_model(model, program, trainer_of=_trainer):
    """An Error that names the worst parameter."""
    expected_loss, expected = loss_and_gradients(program)
    plain = copy.copy(model)
    plain.graph = _without_dropout(model.graph)
    with trainer_of(plain) as trainer:
        loss = trainer.step(**model.example).loss
        ours = {p.key: trainer.gradient(p.key) for p in model.parameters.values() if p.trained and not p.buffer}
    worst, what = differences(model, loss, ours, expected_loss, expected)[0]
    if not worst <= (_tolerance if model.float64 else _tolerance_f32):
        raise error_of(
            [
                (
                    "from_torch",
                    f"what was imported is not what PyTorch computes: {what} differs by {worst:.1e} "
                    f"(loss {loss:.9g} instead of {expected_loss:.9g})",
                    "this is a bug of the importer: please report the module; check=False leaves the comparison out",
                )
            ]
        )
    return worst, what
