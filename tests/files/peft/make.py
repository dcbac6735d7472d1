#!/usr/bin/env python3
"""Writes adapters beside this file, as PEFT saves them, of models of ../hf_relatives.

    pip install torch transformers peft && python3 make.py

Each directory gets adapter_config.json, adapter_model.safetensors and expected.safetensors, all of float64: ids [2, 12],
the logits with the adapter, of the mean cross entropy of logits and ids the gradients of the adapter under its names on
disk, and the logits of the merged model.

    python3 make.py check BASE DIR     does PEFT load the adapter in DIR, and what are the first logits of ids 0 1 2 ...
    python3 make.py experts            of which types in ../hf_models does PEFT drop adapters of linear layers?
"""
import json
import os
import shutil
import sys
import tempfile

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.logging.set_verbosity_error()
torch.manual_seed(1)
HERE = os.path.dirname(os.path.abspath(__file__))
BASES = os.path.join(HERE, "..", "hf_relatives")
ADAPTERS = {
    "qwen3": dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    "llama_biases": dict(r=3, lora_alpha=5.0, target_modules="all-linear"),
    "mistral": dict(r=2, lora_alpha=7, target_modules=["o_proj", "down_proj"], layers_to_transform=[1]),
    "gpt2_erf": dict(r=4, lora_alpha=4, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True),
}


def load(base):
    return transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").eval().double()


def check(base, directory):
    model = peft.PeftModel.from_pretrained(load(base), directory).double()
    with torch.no_grad():
        logits = model(torch.arange(12)[None]).logits
    print(json.dumps(logits[0, -1].tolist()))


def make(name, options):
    model = peft.get_peft_model(load(os.path.join(BASES, name)), peft.LoraConfig(task_type="CAUSAL_LM", **options))
    model = model.eval().double()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_B" in key:
                p.normal_(0, 0.3)
    to = os.path.join(HERE, name)
    shutil.rmtree(to, ignore_errors=True)
    model.save_pretrained(to)
    os.remove(os.path.join(to, "README.md"))
    file = os.path.join(to, "adapter_config.json")
    config = json.load(open(file))
    config["base_model_name_or_path"] = "tests/files/hf_relatives/" + name
    config["target_modules"] = sorted(config["target_modules"])
    json.dump(config, open(file, "w"), indent=2, sort_keys=True)
    ids = torch.randint(0, 29, (2, 12))
    logits = model(ids).logits
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
    expected = {"ids": ids, "logits": logits.detach()}
    for key, p in model.named_parameters():
        if p.requires_grad:
            expected[key.replace(".default", "")] = p.grad
    assert all("lora_" in k for k in expected if k not in ("ids", "logits"))
    with torch.no_grad():
        expected["merged"] = model.merge_and_unload()(ids).logits
    save_file(expected, os.path.join(to, "expected.safetensors"))
    stored = load_file(os.path.join(to, "adapter_model.safetensors"))
    assert sorted(stored) == sorted(k for k in expected if k not in ("ids", "logits", "merged"))
    for f in os.listdir(to):
        os.chmod(os.path.join(to, f), 0o644)


def drops(base):
    """How far logits with adapters on all linear layers but experts are from those of the merged model."""
    def loaded():
        return transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager", dtype=torch.float64,
                                                                 experts_implementation="eager").eval()
    merged, adapters, modules = loaded(), {}, []
    for name, module in merged.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head" and not name.endswith((".gate", "_gate", "router")):
            a = torch.randn(2, module.in_features).double() * 0.3
            b = torch.randn(module.out_features, 2).double() * 0.3
            adapters[f"base_model.model.{name}.lora_A.weight"] = a
            adapters[f"base_model.model.{name}.lora_B.weight"] = b
            module.weight.data += b @ a
            modules.append(name)
    with tempfile.TemporaryDirectory() as folder:
        save_file(adapters, os.path.join(folder, "adapter_model.safetensors"))
        peft.LoraConfig(r=2, lora_alpha=2, task_type="CAUSAL_LM", target_modules=modules,
                        base_model_name_or_path=base).save_pretrained(folder)
        adapted = peft.PeftModel.from_pretrained(loaded(), folder).eval()
        ids = torch.arange(12)[None]
        with torch.no_grad():
            return float((adapted(ids).logits - merged(ids).logits).abs().max())


if __name__ == "__main__":
    if sys.argv[1:] == ["experts"]:
        models = os.path.join(HERE, "..", "hf_models")
        for name in sorted(os.listdir(models)):
            base = os.path.join(models, name)
            config = os.path.join(base, "config.json")
            if os.path.exists(config) and name != "kimi_k2" and "expert" in open(config).read():  # its code is its own
                print(f"{name:20} {drops(base):.2g}")
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3])
    else:
        for name, options in ADAPTERS.items():
            make(name, options)
