#!/usr/bin/env python3
"""Every model of this directory through `stretto convert` and back, loaded by transformers: its logits are the stored ones.

    pip install torch transformers && python3 check.py build/stretto
"""
import os
import subprocess
import sys
import tempfile

import torch

torch.float32 = torch.float = torch.float64
torch.Tensor.float = lambda self, *args, **more: self.double()
torch.set_default_dtype(torch.float64)
import transformers
from safetensors.numpy import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
worst = 0.0
for name in sorted(d for d in os.listdir(HERE) if os.path.isdir(os.path.join(HERE, d))):
    with tempfile.TemporaryDirectory() as work:
        checkpoint, again = os.path.join(work, "checkpoint"), os.path.join(work, "again")
        subprocess.run([sys.argv[1], "convert", os.path.join(HERE, name), checkpoint], check=True, capture_output=True)
        subprocess.run([sys.argv[1], "convert", checkpoint, again, "--dtype", "f64"], check=True, capture_output=True)
        path = os.path.join(again, "config.json")
        text = open(path).read().replace('"kimi_k2"', '"deepseek_v3"')  # a type that needs code of its own
        open(path, "w").write(text)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            again, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64).double().eval()
    expected = load_file(os.path.join(HERE, name, "expected.safetensors"))
    with torch.no_grad():
        logits = model(torch.from_numpy(expected["ids"])).logits.numpy()
    apart = abs(logits - expected["logits"]).max() / abs(expected["logits"]).max()
    worst = max(worst, apart)
    print(f"{name:20} {type(model).__name__:28} {apart:.1e}")
sys.exit(1 if worst > 1e-12 else 0)
