#!/usr/bin/env python3
"""The reference step in PyTorch, on one thread: eager and compiled tokens per second (median of the steps after the first)."""
import statistics
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
torch.set_num_threads(1)
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


def tokens_per_second(compiled, steps):
    model = Gpt()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for _ in range(MICROBATCHES):
            ids, targets = torch.randint(0, VOCAB, (2, ROWS, SEQ))
            (run(ids, targets) / MICROBATCHES).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return ROWS * SEQ * MICROBATCHES / statistics.median(times[1:])


for name, compiled in (("eager", False), ("compiled", True)):
    try:
        print(f"PyTorch {torch.__version__} {name}: {tokens_per_second(compiled, 4):.0f} tok/s", flush=True)
    except Exception as e:  # torch.compile needs a working C++ tool chain of its own choice
        print(f"PyTorch {name}: failed ({type(e).__name__})")
