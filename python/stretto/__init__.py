"""Stretto from Python: runs, schedules, plans and training on numpy batches.

    import numpy as np, stretto
    trainer = stretto.Trainer(model={"family": "gpt2", "layers": 2}, parallel={"pipe": 2})
    ids = np.zeros(trainer.inputs["ids"].sizes, np.int32)
    print(trainer.step(ids=ids, targets=ids).loss)

Sections and keys are those of a run file (docs/keys.md). Mistakes are stretto.Error.
"""

from ._library import Error, Fault, __version__
from ._runs import check, config, metrics, plan, simulate, train
from ._schedules import check_schedule, schedule, simulate_schedule
from ._trainer import Described, Step, Trainer

__all__ = [
    "Described", "Error", "Fault", "Step", "Trainer", "check", "check_schedule", "config", "metrics", "plan",
    "schedule", "simulate", "simulate_schedule", "train", "__version__",
]
