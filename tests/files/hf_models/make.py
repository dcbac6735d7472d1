#!/usr/bin/env python3
"""Writes a tiny random model of every type beside this file, as transformers saves it, with what it computes.

    pip install torch transformers && python3 make.py [NAME ...]

Everything is computed in float64: float32 means float64 to transformers here, rotary tables and norms included. Each
directory gets config.json, model.safetensors and expected.safetensors: ids [2, 12], logits [2, 12, vocab], the loss of
the tokens that follow before and during ten steps of AdamW (lr 1e-3, betas 0.9 0.95, eps 1e-8, decay 0.1 of matrices),
greedy [8]: what follows the first four ids, and every gradient of the first step as `gradients.NAME`, in float32.
"""
import json
import os
import sys

import numpy
import torch

f32 = torch.float32
torch.float32 = torch.float = torch.float64
torch.Tensor.float = lambda self, *args, **more: self.double()
torch.set_default_dtype(torch.float64)
import transformers
from safetensors.numpy import load_file, save_file

transformers.logging.set_verbosity_error()
HERE = os.path.dirname(os.path.abspath(__file__))
BASE = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=29, max_position_embeddings=32, initializer_range=0.3, bos_token_id=0, eos_token_id=0,
            pad_token_id=0)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12)
DEEPSEEK = dict(moe_intermediate_size=12, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
                q_lora_rank=10, kv_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_group=4,
                topk_group=2, first_k_dense_replace=1, routed_scaling_factor=1.5)
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=8, beta_fast=4.0,
            beta_slow=1.0)
DEEP_YARN = dict(YARN, mscale=0.7, mscale_all_dim=1.2)
LONGROPE = dict(rope_type="longrope", rope_theta=100.0, short_factor=[1.0, 1.5], long_factor=[1.3, 4.0])
T = transformers


def with_(base, **more):
    return {**base, **more}


MODELS = {
    "mistral_window": lambda: T.MistralConfig(**BASE, sliding_window=5),
    "mixtral_window": lambda: T.MixtralConfig(**BASE, sliding_window=4, num_local_experts=4),
    "qwen2_window": lambda: T.Qwen2Config(**BASE, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen2_moe": lambda: T.Qwen2MoeConfig(**BASE, **MOE, shared_expert_intermediate_size=20),
    "qwen3_moe": lambda: T.Qwen3MoeConfig(**BASE, **MOE, head_dim=6, norm_topk_prob=True),
    "qwen3_moe_sparse": lambda: T.Qwen3MoeConfig(**BASE, **MOE, head_dim=6, norm_topk_prob=False, mlp_only_layers=[0]),
    "qwen3": lambda: T.Qwen3Config(**BASE, head_dim=6),
    "llama3": lambda: T.LlamaConfig(**BASE, rope_parameters=dict(rope_type="llama3", rope_theta=100.0, factor=4.0,
                                                                 low_freq_factor=1.0, high_freq_factor=2.0,
                                                                 original_max_position_embeddings=16)),
    "llama_yarn": lambda: T.LlamaConfig(**BASE, rope_parameters=YARN),
    "olmo2": lambda: T.Olmo2Config(**BASE),
    "olmoe": lambda: T.OlmoeConfig(**BASE, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False),
    "gemma2": lambda: T.Gemma2Config(**BASE, head_dim=6, sliding_window=5, query_pre_attn_scalar=9,
                                     attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    "gemma3": lambda: T.Gemma3TextConfig(**with_(BASE, num_hidden_layers=4), head_dim=6, sliding_window=5,
                                         query_pre_attn_scalar=9, layer_types=["sliding_attention"] * 3 +
                                         ["full_attention"]),
    "gpt_oss": lambda: T.GptOssConfig(**BASE, head_dim=6, sliding_window=5, num_local_experts=4,
                                      num_experts_per_tok=2, rope_parameters=YARN),
    "granite": lambda: T.GraniteConfig(**BASE, embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.5,
                                       attention_multiplier=0.4),
    "granitemoe": lambda: T.GraniteMoeConfig(**BASE, num_local_experts=4, num_experts_per_tok=2,
                                             embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.5,
                                             attention_multiplier=0.4),
    "phi3": lambda: T.Phi3Config(**BASE, sliding_window=6),
    "phi3_partial": lambda: T.Phi3Config(**with_(BASE, hidden_size=32), partial_rotary_factor=0.5),
    "phi3_longrope": lambda: T.Phi3Config(**BASE, original_max_position_embeddings=16, rope_parameters=LONGROPE),
    "phi3_longrope_long": lambda: T.Phi3Config(**BASE, original_max_position_embeddings=3, rope_parameters=LONGROPE),
    "llama4": lambda: T.Llama4TextConfig(**with_(BASE, num_hidden_layers=4), head_dim=4, intermediate_size_mlp=20,
                                         num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2,
                                         attention_chunk_size=5, no_rope_layer_interval=4, floor_scale=3, attn_scale=0.5,
                                         rope_parameters=dict(rope_type="llama3", rope_theta=100.0, factor=4.0,
                                                              low_freq_factor=1.0, high_freq_factor=2.0,
                                                              original_max_position_embeddings=16)),
    "llama4_top2": lambda: T.Llama4TextConfig(**BASE, head_dim=4, intermediate_size_mlp=20, num_local_experts=4,
                                              num_experts_per_tok=2, attention_chunk_size=4, no_rope_layers=[1, 1],
                                              use_qk_norm=False, attn_temperature_tuning=False, attention_bias=True,
                                              layer_types=["full_attention", "chunked_attention"]),
    "deepseek_v2": lambda: T.DeepseekV2Config(**with_(BASE, num_key_value_heads=4), **DEEPSEEK,
                                              topk_method="group_limited_greedy"),
    "deepseek_v2_yarn": lambda: T.DeepseekV2Config(**with_(BASE, num_key_value_heads=4, num_hidden_layers=1),
                                                   **with_(DEEPSEEK, first_k_dense_replace=0), rope_parameters=DEEP_YARN),
    "deepseek_v3": lambda: T.DeepseekV3Config(**with_(BASE, num_key_value_heads=4), **DEEPSEEK),
    "deepseek_v3_yarn": lambda: T.DeepseekV3Config(**with_(BASE, num_key_value_heads=4, num_hidden_layers=1),
                                                   **with_(DEEPSEEK, first_k_dense_replace=0), rope_parameters=DEEP_YARN),
    # Moonshot's own: its config.json in the style of 4.x, weights as DeepSeek-V3 has them.
    "kimi_k2": lambda: T.DeepseekV3Config(**with_(BASE, num_key_value_heads=4), **with_(DEEPSEEK, n_group=1, topk_group=1),
                                          rope_parameters=dict(YARN, beta_fast=1.0, mscale=1.0, mscale_all_dim=1.0)),
    "glm4_moe": lambda: T.Glm4MoeConfig(**BASE, head_dim=8, use_qk_norm=True, n_routed_experts=8,
                                        num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=12, n_group=2,
                                        topk_group=1, first_k_dense_replace=1, partial_rotary_factor=0.5,
                                        attention_bias=True, routed_scaling_factor=2.0),
}


def save(model, to):
    """As float32, on disk and from now on in the model, too."""
    with torch.no_grad():
        kept = [b for n, b in model.named_buffers() if n.endswith("e_score_correction_bias")]
        for p in list(model.parameters()) + kept:
            p.copy_(p.to(f32).double())
    model.save_pretrained(to)
    path = os.path.join(to, "model.safetensors")
    save_file({k: v.astype("float32") for k, v in load_file(path).items()}, path, metadata={"format": "pt"})
    config = json.load(open(os.path.join(to, "config.json")))
    config["dtype"] = "float32"
    if os.path.basename(to) == "kimi_k2":
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}
        config.update(model_type="kimi_k2", auto_map={"AutoConfig": "configuration_deepseek.DeepseekV3Config"},
                      scoring_func="sigmoid", topk_method="noaux_tc", moe_layer_freq=1, ep_size=1, seq_aux=True,
                      aux_loss_alpha=0.001, num_nextn_predict_layers=0)
        for key in ("head_dim", "qk_head_dim", "rope_interleave"):
            config.pop(key, None)
    json.dump(config, open(os.path.join(to, "config.json"), "w"), indent=2, sort_keys=True)
    extra = os.path.join(to, "generation_config.json")
    if os.path.exists(extra):
        os.remove(extra)


def stored_gradients(model, to):
    """Gradients under the names and in the shapes that weights have on disk: as if they were weights."""
    import copy
    other = copy.deepcopy(model)
    with torch.no_grad():
        for p, q in zip(other.parameters(), model.parameters()):
            p.copy_(q.grad if q.grad is not None else torch.zeros_like(q))
    other.save_pretrained(to)
    names = {n for n, _ in model.named_buffers()}
    grads = {k: v for k, v in load_file(os.path.join(to, "model.safetensors")).items() if k not in names}
    return {f"gradients.{k}": v.astype("float32") for k, v in grads.items()}


def decays(name, p):
    return p.dim() > 1 and not name.endswith("bias") and not name.endswith("bias_proj")


def make(name):
    torch.manual_seed(0)
    config = MODELS[name]()
    model = T.AutoModelForCausalLM.from_config(config, attn_implementation="eager",
                                                   experts_implementation="eager").double().eval()
    with torch.no_grad():
        for n, p in model.named_parameters():
            if p.dim() == 1 or n.endswith("bias"):  # biases and gains away from zero and one
                p.add_(torch.randn_like(p) * 0.2)
        for n, b in model.named_buffers():
            if n.endswith("e_score_correction_bias"):
                b.add_(torch.randn_like(b) * 0.2)
    to = os.path.join(HERE, name)
    os.makedirs(to, exist_ok=True)
    save(model, to)
    ids = torch.randint(1, config.vocab_size, (2, 12))

    def loss():
        logits = model(ids, use_cache=False).logits
        return logits, torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]),
                                                         ids[:, 1:].reshape(-1))
    logits, first = loss()
    first.backward()
    scratch = os.path.join("/tmp", f"hf_models_{os.getpid()}")
    out = {"ids": ids.numpy(), "logits": logits.detach().numpy(), **stored_gradients(model, scratch)}
    with torch.no_grad():
        row = ids[:1, :4]
        for _ in range(8):
            row = torch.cat([row, model(row, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
        out["greedy"] = row[0, 4:].numpy()
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if decays(n, p)], "weight_decay": 0.1},
              {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    losses = []
    for _ in range(11):
        adam.zero_grad()
        value = loss()[1]
        losses.append(value.item())
        value.backward()
        adam.step()
    out["losses"] = numpy.array(losses)
    save_file({k: numpy.ascontiguousarray(v) for k, v in out.items()}, os.path.join(to, "expected.safetensors"))
    for file in os.listdir(to):
        os.chmod(os.path.join(to, file), 0o644)


for chosen in sys.argv[1:] or MODELS:
    try:
        make(chosen)
        print(chosen)
    except Exception as e:
        print(chosen, "FAILED", repr(e)[:300])
