"""Stretto from Python: runs, schedules, plans and training on numpy batches.

    import numpy as np, stretto
    trainer = stretto.Trainer(model={"family": "gpt2", "layers": 2}, parallel={"pipe": 2})
    ids = np.zeros(trainer.inputs["ids"].sizes, np.int32)
    print(trainer.step(ids=ids, targets=ids).loss)

Sections and keys are those of a run file (docs/keys.md). Mistakes are stretto.Error.
"""

from ._ahead import ahead
from ._library import Error, Fault, Picture, __version__
from ._runs import check, config, convert, eval, metrics, plan, simulate, train, verify
from ._schedules import check_schedule, schedule, simulate_schedule
from ._trainer import Described, Step, Trainer


def from_torch(module, batch, **how):
    """A PyTorch module as a model for Trainer (docs/torch.md)."""
    from .torch import from_torch

    return from_torch(module, batch, **how)


__all__ = [
    "Described", "Error", "Fault", "Picture", "Step", "Trainer", "ahead", "check", "check_schedule", "config", "convert",
    "eval", "from_torch", "metrics", "plan", "schedule", "simulate", "simulate_schedule", "train", "verify", "__version__",
]
