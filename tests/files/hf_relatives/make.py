#!/usr/bin/env python3
"""Writes tiny models of several kinds beside this file, as transformers saves them, with their logits in float64.

    pip install torch transformers && python3 make.py

Rotary tables and RMSNorm's mean are float32 inside transformers whatever the model's type is, so logits are good to
1e-6. Each directory gets config.json, model.safetensors and expected.safetensors (ids [2, 12], logits [2, 12, 29]).
"""
import os
import torch
import transformers
from safetensors.torch import save_file

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=29, max_position_embeddings=32, initializer_range=0.3, bos_token_id=0, eos_token_id=0)
GPT2 = dict(n_embd=16, n_layer=2, n_head=2, n_positions=32, vocab_size=29, initializer_range=0.3, bos_token_id=0,
            eos_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
LINEAR = dict(rope_type="linear", rope_theta=100.0, factor=4.0)
MODELS = {
    "llama_biases": transformers.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True),
    "llama_tied_gelu": transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh",
                                                head_dim=6),
    "llama_llama3": transformers.LlamaConfig(**LLAMA, rope_parameters=LLAMA3),
    "llama_linear": transformers.LlamaConfig(**LLAMA, rope_parameters=LINEAR),
    "mistral": transformers.MistralConfig(**LLAMA, sliding_window=None),
    "qwen2": transformers.Qwen2Config(**LLAMA),
    "qwen3": transformers.Qwen3Config(**LLAMA, head_dim=8),
    "gpt2_untied_relu": transformers.GPT2Config(**GPT2, tie_word_embeddings=False, activation_function="relu"),
    "gpt2_erf": transformers.GPT2Config(**GPT2, n_inner=20, activation_function="gelu"),
}

for name, config in MODELS.items():
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:  # biases and gains away from zero and one
                p.add_(torch.randn_like(p) * 0.2)
    to = os.path.join(HERE, name)
    model.save_pretrained(to)
    os.remove(os.path.join(to, "generation_config.json"))
    ids = torch.randint(0, config.vocab_size, (2, 12))
    with torch.no_grad():
        logits = model.double()(ids).logits
    save_file({"ids": ids, "logits": logits}, os.path.join(to, "expected.safetensors"))
    for file in os.listdir(to):
        os.chmod(os.path.join(to, file), 0o644)
