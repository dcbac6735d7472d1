#!/usr/bin/env python3
"""Writes, per model, the gradients that PyTorch computes in bf16, beside this file.

    pip install torch transformers && python3 make.py

The models are those of ../hf and ../hf_relatives: parameters are rounded to bf16, everything is computed as transformers
computes it in that type, and the loss is taken of the logits in float32. Printed is how far these gradients are from
those of the same run in float32 (norm of the difference over norm, the largest of all parameters and of all together).
"""
import os
import tempfile
import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.logging.set_verbosity_error()
torch.backends.mkldnn.enabled = False  # plain loops: what is compared is arithmetic, not a library
HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"gpt2": "../hf/gpt2", "llama": "../hf/llama", "mixtral": "../hf/mixtral", "qwen3": "../hf_relatives/qwen3"}


def batch_of(folder):
    if os.path.exists(os.path.join(folder, "batch.safetensors")):
        batch = load_file(os.path.join(folder, "batch.safetensors"))
        return batch["input_ids"].long(), batch["targets"].long()
    ids = load_file(os.path.join(folder, "expected.safetensors"))["ids"].long()
    return ids, ids


def gradients(folder, dtype):
    model = os.path.join(folder, "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model if os.path.isdir(model) else folder, dtype=torch.float32).to(dtype)
    model.train()
    ids, targets = batch_of(folder)
    logits = model(ids).logits.float()
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100).backward()
    with torch.no_grad(), tempfile.TemporaryDirectory() as saved:  # under the names that files have
        for p in model.parameters():
            p.copy_(p.grad)
        model.save_pretrained(saved)
        return load_file(os.path.join(saved, "model.safetensors"))


for name, folder in MODELS.items():
    folder = os.path.join(HERE, folder)
    wide, narrow = gradients(folder, torch.float32), gradients(folder, torch.bfloat16)
    apart = {n: (narrow[n].float() - g).norm().item() / g.norm().item() for n, g in wide.items() if g.norm() > 0}
    whole = sum((narrow[n].float() - g).square().sum() for n, g in wide.items()).sqrt().item()
    whole /= sum(g.square().sum() for g in wide.values()).sqrt().item()
    worst = max(apart, key=apart.get)
    print(f"{name}: {apart[worst]:.4f} ({worst}), all together {whole:.4f}")
    to = os.path.join(HERE, name + ".safetensors")
    save_file({n: g.contiguous() for n, g in narrow.items()}, to)
    os.chmod(to, 0o644)
