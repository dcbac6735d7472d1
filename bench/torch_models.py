#!/usr/bin/env python3
"""What stretto.from_torch makes of modules, and how long a step takes: the tables of docs/torch.md.

    bench/torch_models.py                  every module of tests/python/torch/zoo.py against PyTorch, in f64
    bench/torch_models.py --import         how long 32 layers take beside torch.export
    bench/torch_models.py --tracer         which of them torch.distributed.pipelining cuts in two and runs
    bench/torch_models.py --speed          a step of an imported llama, of the family and of PyTorch, in turn

It needs the package beside PyTorch and transformers; --rounds says how many turns --speed takes.
"""

import argparse
import pathlib
import re
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/python/torch"))
import against  # noqa: E402
import stretto  # noqa: E402
import zoo  # noqa: E402
from stretto.torch.export import exported  # noqa: E402
from stretto.torch.imports import imported  # noqa: E402
from stretto.torch.known import known_nodes, live_nodes  # noqa: E402


def row(name):
    module, batch = zoo.make(name)
    program = exported(module, batch)
    known, live = known_nodes(program), live_nodes(program)
    calls = [n for n in program.nodes if n.op == "call_function"]
    of_parameters = [n for n in calls if n in live and n not in known]
    model = stretto.from_torch(module, batch, check=True)
    losses, parameters, _ = against.torch_steps(name, against.adamw)
    module.load_state_dict(zoo.make(name)[0].state_dict())
    optimizer = against.adamw(module)
    scheduler, ours = against.cosine(optimizer), []
    with stretto.Trainer(model, optimizer=optimizer) as trainer:
        for given in against.batches(name):
            ours.append(trainer.step(**given).loss)
            scheduler.step()
        steps = against.worst({k: v.numpy() for k, v in trainer.state_dict().items()}, parameters)[0]
    apart = max(abs(a - b) / abs(b) for a, b in zip(ours, losses))
    nodes = sum(n["op"] not in ("param", "input", "ids", "values", "iota", "state") for n in model.graph["nodes"])
    print(f"| {name} | {len(calls)}, {len(of_parameters)} | {nodes} | {model.pieces} | {apart:.0e} | "
          f"{model.checked[0]:.0e} | {steps:.0e} |", flush=True)


def table():
    print("| model | ATen nodes, with parameters before them | graph nodes | pieces | loss | gradient | ten steps |")
    print("|---|---|---|---|---|---|---|")
    for name in zoo.ZOO:
        row(name)


def llama(layers, **sizes):
    T = zoo.hugging_face()
    config = T.LlamaConfig(num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=4, **sizes)
    return zoo.Loss(T.LlamaForCausalLM(config), use_cache=False)


def import_time():
    module = llama(32, vocab_size=512, hidden_size=64, intermediate_size=160)
    ids = torch.randint(0, 512, (2, 32))
    batch = {"input_ids": ids, "labels": ids}
    start = time.process_time()
    program = exported(module, batch)
    middle = time.process_time()
    model = imported(program, None, None)
    end = time.process_time()
    print(f"torch.export {middle - start:.1f} s of processor time, all else {end - middle:.1f} s: "
          f"{len(model.graph['nodes'])} nodes")


def speed(rounds):
    torch.set_num_threads(1)
    module = llama(4, vocab_size=1024, hidden_size=256, intermediate_size=704, max_position_embeddings=256)
    ids = torch.randint(0, 1024, (4, 256))
    batch = {"input_ids": ids, "labels": ids}
    imported = stretto.Trainer(stretto.from_torch(module, batch, check=False), optimizer=torch.optim.AdamW(module.parameters()))
    shape = {"family": "llama", "layers": 4, "width": 256, "heads": 4, "kv_heads": 4, "ff": 704, "context": 256, "vocab": 1024}
    family = stretto.Trainer(model=shape, train={"batch": 4, "clip": 0})
    arrays = {"ids": ids.int().numpy(), "targets": ids.int().numpy()}
    optimizer = torch.optim.AdamW(module.parameters())

    def eager():
        optimizer.zero_grad()
        module(**batch).backward()
        optimizer.step()

    ways = {"imported": lambda: imported.step(**batch), "family": lambda: family.step(**arrays), "PyTorch": eager}
    seconds = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, step in ways.items():
            start = time.process_time()
            for _ in range(3):
                step()
            seconds[name].append((time.process_time() - start) / 3)
    for name, all in seconds.items():
        print(f"{name:9} {1e3 * statistics.median(all[1:]):7.1f} ms of processor time a step")
    ratios = [a / b for a, b in zip(seconds["imported"][1:], seconds["family"][1:])]
    print(f"imported / family: {statistics.median(ratios):.3f}")


def tracer():
    from torch.distributed.pipelining import SplitPoint, pipeline

    failed, names = 0, [n for n in zoo.ZOO if zoo.NEEDS.get(n, "transformers") and n != "clip"]
    for name in names:
        module, batch = zoo.make(name, torch.float32)
        blocks = [key for key, _ in module.named_modules() if re.search(r"(layers|h|layer|block|blocks)\.1$", key)]
        try:
            pipeline(module, mb_args=(), mb_kwargs=batch, split_spec={blocks[-1]: SplitPoint.BEGINNING})(**batch)
            print(f"{name}: two stages")
        except Exception as e:  # the reasons are many, and of many types
            failed += 1
            print(f"{name}: {str(e).split(chr(10))[0]}")
    print(f"{failed} of {len(names)} fail")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--import", dest="importing", action="store_true")
    parser.add_argument("--tracer", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.importing:
        import_time()
    elif options.tracer:
        tracer()
    elif options.speed:
        speed(options.rounds)
    else:
        table()
