#!/usr/bin/env python3
"""Schedules written by `stretto show --for torch`, trained by torch.distributed.pipelining on 4 gloo processes: every
gradient beside that of the whole model in torch, and in Stretto where its package is there.

    bench/torch_schedules.py build/stretto              # a Python with torch; PYTHONPATH=python for the third column
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
except ImportError:
    print("torch is not installed (pip install torch): left out")
    sys.exit(0)

ACTORS, MICROBATCHES, ROWS, WIDTH = 4, 8, 16, 12


def blocks(stages):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)).double()
            for _ in range(stages)]


def data():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(ROWS, WIDTH, generator=g, dtype=torch.float64) for _ in range(2))


def loss(y, target):
    return ((y - target) ** 2).mean()


def rank_main(rank, file, stages, store, results):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ACTORS)
    rows = [line.split(",") for line in pathlib.Path(file).read_text().split()]
    number = lambda cell: int("".join(c if c.isdigit() else " " for c in cell.lstrip("(")).split()[0])
    mine = sorted({number(cell) for cell in rows[rank]})
    all_blocks, (x, target) = blocks(stages), data()
    parts = [PipelineStage(all_blocks[s], s, stages, torch.device("cpu")) for s in mine]
    schedule = _PipelineScheduleRuntime(parts, MICROBATCHES, loss_fn=loss, scale_grads=True)
    schedule._load_csv(file, format="compute_only")
    schedule.step(*([x] if 0 in mine else []), **({"target": target} if stages - 1 in mine else {}))
    results.put({s: [p.grad.tolist() for p in all_blocks[s].parameters()] for s in mine})
    dist.barrier()
    dist.destroy_process_group()


def trained(file, stages, folder):
    context = mp.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=rank_main, args=(r, file, stages, f"{folder}/store", results))
                 for r in range(ACTORS)]
    for p in processes:
        p.start()
    found = {}
    for _ in processes:
        found |= {s: [torch.tensor(g, dtype=torch.float64) for g in gradients]
                  for s, gradients in results.get(timeout=600).items()}
    for p in processes:
        p.join()
    pathlib.Path(f"{folder}/store").unlink(missing_ok=True)
    return found


class Whole(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.blocks = nn.ModuleList(blocks(stages))

    def forward(self, x, target):
        for block in self.blocks:
            x = block(x)
        return loss(x, target)


def in_torch(stages):
    module, (x, target) = Whole(stages), data()
    module(x, target).backward()
    return {s: [p.grad for p in block.parameters()] for s, block in enumerate(module.blocks)}


def in_stretto(stages, schedule):
    import stretto
    module, (x, target) = Whole(stages), data()
    model = stretto.from_torch(module, {"x": x, "target": target}, boundaries=["blocks.*"])
    trainer = stretto.Trainer(model, optimizer=torch.optim.SGD(module.parameters(), lr=0.0),
                              train={"microbatches": MICROBATCHES, "dtype": "f64"},
                              parallel={"pipe": ACTORS, "schedule": schedule})
    trainer.step(x=x, target=target)
    return {s: [torch.as_tensor(trainer.gradient(f"blocks.{s}.{name}")).reshape(p.shape)
                for name, p in block.named_parameters()] for s, block in enumerate(module.blocks)}


def apart(a, b):
    return max(float((x - y).abs().max() / y.abs().max()) for s in b for x, y in zip(a[s], b[s]))


def own_rows(stage):
    """All forwards, then all input gradients, weight gradients last: nobody else's schedule."""
    return ",".join(f"{stage}{phase}{m}" for phase in "FIW" for m in range(MICROBATCHES))


def main(executable):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        own = f"{folder}/own.csv"
        pathlib.Path(own).write_text("\n".join(map(own_rows, range(ACTORS))) + "\n")
        for name in ("zb-v", "v-half", "interleaved-zb", own):
            file = f"{folder}/torch.csv"
            subprocess.run([executable, "show", "--schedule", name, "--actors", str(ACTORS), "--microbatches",
                            str(MICROBATCHES), "-o", file, "--for", "torch"], check=True, stdout=subprocess.DEVNULL)
            stages = ACTORS if name == own else 2 * ACTORS
            pipelined = trained(file, stages, folder)
            worst = apart(pipelined, in_torch(stages))
            failed |= not worst < 1e-12
            line = f"{'own.csv' if name == own else name:16} gradients are {worst:.1e} from torch's whole model"
            try:
                ours = in_stretto(stages, name)
            except ImportError:
                print(line + "; the package stretto is not there")
                continue
            worst = apart(pipelined, ours)
            failed |= not worst < 1e-12
            print(line + f", {worst:.1e} from Stretto's under the same schedule", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
