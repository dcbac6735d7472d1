#!/usr/bin/env python3
"""The reference step in PyTorch and in Stretto, in turns, on one thread and on two.

    bench/torch_step.py build/bench/threads ROUNDS [eager]
"""
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("torch is not installed (pip install torch): left out")
    sys.exit(0)

LAYERS, WIDTH, HEADS, SEQ, ROWS, VOCAB, MICROBATCHES = 4, 512, 8, 256, 4, 8192, 4
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(c, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(SEQ, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, targets):
        x = self.norm(self.blocks(self.wte(ids) + self.wpe.weight))
        return F.cross_entropy(self.head(x).view(-1, VOCAB), targets.view(-1))


class Torch:
    """One model and its optimizer, on some threads."""

    def __init__(self, threads, compiled):
        self.threads = threads
        self.model = Gpt()
        self.run = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)

    def step(self):
        """Tokens per second of one step."""
        torch.set_num_threads(self.threads)
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(MICROBATCHES):
            ids, targets = torch.randint(0, VOCAB, (2, ROWS, SEQ))
            (self.run(ids, targets) / MICROBATCHES).backward()
        self.optimizer.step()
        return ROWS * SEQ * MICROBATCHES / (time.perf_counter() - start)


class Stretto:
    """A process that makes a step when it is asked to: build/bench/threads THREADS."""

    def __init__(self, program, threads):
        self.process = subprocess.Popen([program, "asked", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


program, rounds = sys.argv[1], int(sys.argv[2])
kinds = [("eager", False), ("compiled", True)][: 1 if "eager" in sys.argv else 2]
for threads in (1, 2):
    ours = Stretto(program, threads)
    runs = {}
    for name, compiled in kinds:
        try:
            runs[name] = Torch(threads, compiled)
            runs[name].step()
        except Exception as e:  # torch.compile needs a working C++ tool chain of its own choice
            print(f"PyTorch {name}: failed ({type(e).__name__})")
            runs.pop(name)
    ours.step()
    own, theirs = [], {name: [] for name in runs}
    for _ in range(rounds):  # a run is compared with the steps right before and after it
        own.append(ours.step())
        for name, run in runs.items():
            theirs[name].append(run.step())
            own.append(ours.step())
    ours.end()
    word = f"{threads} thread" + ("s" if threads > 1 else "")
    print(f"{word}: Stretto {statistics.median(own):.0f} tok/s")
    for place, (name, speeds) in enumerate(theirs.items()):
        beside = [(own[i * (len(runs) + 1) + place] + own[i * (len(runs) + 1) + place + 1]) / 2 / s for i, s in enumerate(speeds)]
        print(f"{word}: PyTorch {torch.__version__} {name} {statistics.median(speeds):.0f} tok/s, "
              f"Stretto / it {statistics.median(beside):.3f} [{min(beside):.3f}, {max(beside):.3f}]", flush=True)
