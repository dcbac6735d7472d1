#!/usr/bin/env python3
"""muon.json: ten steps of torch.optim.Muon on given gradients, in f64. Made with torch 2.15.

Its Newton-Schulz iteration is made in bf16; here the same function is run with that one word changed to f64.

    python tests/files/optim/make.py
"""
import inspect
import json
import pathlib

import torch
from torch.optim import _muon

source = inspect.getsource(_muon._zeropower_via_newtonschulz)
assert source.count("torch.bfloat16") == 1
exec(source.replace("torch.bfloat16", "torch.float64"), _muon.__dict__)

STEPS = 10
generator = torch.Generator().manual_seed(1)


def numbers(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def run(rows, columns, **options):
    w = torch.nn.Parameter(numbers(columns, rows))  # torch has what comes out first
    start, gradients = w.detach().clone(), [numbers(columns, rows) for _ in range(STEPS)]
    optimizer = torch.optim.Muon([w], lr=0.02, weight_decay=0.1, momentum=0.95, **options)
    for g in gradients:
        w.grad = g.clone()
        optimizer.step()
    plain = lambda t: t.T.contiguous().flatten().tolist()
    return {"rows": rows, "columns": columns, "scale": {"match_rms_adamw": "rms"}.get(options["adjust_lr_fn"], "original"),
            "nesterov": options["nesterov"], "start": plain(start), "gradients": [plain(g) for g in gradients],
            "end": plain(w.detach())}


cases = [run(4, 6, nesterov=True, adjust_lr_fn="original"), run(6, 4, nesterov=True, adjust_lr_fn="match_rms_adamw"),
         run(5, 5, nesterov=False, adjust_lr_fn="original"), run(7, 2, nesterov=True, adjust_lr_fn="original")]
path = pathlib.Path(__file__).parent / "muon.json"
path.write_text(json.dumps({"torch": torch.__version__, "lr": 0.02, "decay": 0.1, "cases": cases}, indent=0) + "\n")
