"""Modules to import, by name: (a module that returns its loss, a batch). Tiny, with random weights, in f64.

    module, batch = zoo.make("nanogpt")
"""

import torch
import torch.nn.functional as F
from torch import nn

ROWS, PLACES = 6, 10  # sizes that nothing else has


class Loss(nn.Module):
    """A Hugging Face model whose result is its loss."""

    def __init__(self, model, **fixed):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, **batch):
        return self.model(**batch, **self.fixed).loss


def ids(vocab=44, rows=ROWS, places=PLACES):
    return torch.randint(3, vocab, (rows, places))


def language(model, **fixed):
    x = ids()
    return Loss(model, use_cache=False, **fixed), {"input_ids": x, "labels": x.clone()}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])  # square, with residuals
        self.up, self.head = nn.Linear(8, 16), nn.Linear(16, 5)

    def forward(self, x, y):
        h = torch.tanh(self.up(x))
        for layer in self.layers:
            h = h + F.relu(layer(h))
        return F.cross_entropy(self.head(h), y)


def mlp():
    return MLP(), {"x": torch.randn(ROWS, 8), "y": torch.randint(0, 5, (ROWS,))}


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.ln_1, self.ln_2, self.heads, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), heads, dropout
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.proj(a.transpose(1, 2).contiguous().view(b, t, c)), self.dropout, self.training)
        return x + F.dropout(self.out(F.gelu(self.fc(self.ln_2(x)))), self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, width=24, heads=4, layers=4, vocab=44, context=16, dropout=0.0, checkpointed=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.head.weight = self.wte.weight
        self.checkpointed = checkpointed

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def nanogpt(**options):
    return GPT(**options), {"idx": ids(), "targets": ids()}


def dropout():
    return nanogpt(dropout=0.2)


def checkpointed():
    import torch.utils.checkpoint  # noqa: F401

    return nanogpt(checkpointed=True)


class Convolutions(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.first, self.norm = nn.Conv2d(into, out, 3, padding=1), nn.GroupNorm(2, out)
        self.second = nn.Conv2d(out, out, 3, padding=1)

    def forward(self, x):
        return F.silu(self.second(F.silu(self.norm(self.first(x)))))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Convolutions(3, 4), Convolutions(4, 8), Convolutions(8, 8)
        self.d, self.down, self.out = Convolutions(12, 4), nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.Conv2d(4, 3, 1)

    def forward(self, x, y):
        a = self.a(x)
        c = self.c(self.b(self.down(a)))
        up = F.interpolate(c, scale_factor=2, mode="nearest")
        return F.mse_loss(self.out(self.d(torch.cat([up, a], 1))), y)


def unet():
    return UNet(), {"x": torch.randn(ROWS, 3, 8, 8), "y": torch.randn(ROWS, 3, 8, 8)}


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.bn, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2)
        self.second, self.bn2, self.fc = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x, y):
        h = self.pool(F.relu(self.bn(self.first(x))))
        h = F.relu(h + self.bn2(self.second(h)))
        return F.cross_entropy(self.fc(F.adaptive_avg_pool2d(h, 1).flatten(1)), y)


def resnet():
    return ResNet(), {"x": torch.randn(ROWS, 3, 8, 8), "y": torch.randint(0, 5, (ROWS,))}


class Towers(nn.Module):
    """Rows of a batch are told apart: a loss of all pairs."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 12))
        self.b = nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.Linear(16, 12))
        self.scale = nn.Parameter(torch.tensor(1.3))

    def forward(self, x, y):
        a, b = F.normalize(self.a(x), dim=-1), F.normalize(self.b(y), dim=-1)
        scores = self.scale.exp() * a @ b.T
        own = torch.arange(scores.shape[0])
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


def towers():
    return Towers(), {"x": torch.randn(ROWS, 8), "y": torch.randn(ROWS, 7)}


def hugging_face():
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers


SMALL = {"vocab_size": 44, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}


def gpt2():
    T = hugging_face()
    return language(T.GPT2LMHeadModel(T.GPT2Config(vocab_size=44, n_positions=16, n_embd=24, n_layer=4, n_head=4,
                                                   resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)))


def llama(**more):
    T = hugging_face()
    return language(T.LlamaForCausalLM(T.LlamaConfig(**SMALL | more)))


def qwen3():
    T = hugging_face()
    return language(T.Qwen3ForCausalLM(T.Qwen3Config(**SMALL, head_dim=8)))


def gemma3():
    T = hugging_face()
    return language(T.Gemma3ForCausalLM(T.Gemma3TextConfig(
        **SMALL, head_dim=8, sliding_window=4, query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention"] * 2)))


def phi3():
    T = hugging_face()
    return language(T.Phi3ForCausalLM(T.Phi3Config(**SMALL, pad_token_id=0)))


def bert():
    T = hugging_face()
    x = ids()
    seen = torch.ones_like(x)
    seen[:, -3:] = 0
    model = T.BertForMaskedLM(T.BertConfig(
        vocab_size=44, hidden_size=24, num_hidden_layers=4, num_attention_heads=4, intermediate_size=40,
        max_position_embeddings=16, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    return Loss(model), {"input_ids": x, "attention_mask": seen, "labels": x.clone()}


def t5():
    T = hugging_face()
    model = T.T5ForConditionalGeneration(T.T5Config(
        vocab_size=44, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=4, dropout_rate=0,
        relative_attention_num_buckets=8, relative_attention_max_distance=16, decoder_start_token_id=0, pad_token_id=0))
    return Loss(model, use_cache=False), {"input_ids": ids(), "labels": ids(places=7)}


def mixtral():
    T = hugging_face()
    return language(T.MixtralForCausalLM(T.MixtralConfig(
        **SMALL, num_local_experts=4, num_experts_per_tok=2, experts_implementation="batched_mm")))


def qwen3_moe():
    T = hugging_face()
    return language(T.Qwen3MoeForCausalLM(T.Qwen3MoeConfig(
        **SMALL, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20,
        experts_implementation="batched_mm")))


def mamba():
    T = hugging_face()
    return language(T.MambaForCausalLM(T.MambaConfig(
        vocab_size=44, hidden_size=24, state_size=4, num_hidden_layers=2, time_step_rank=3)))


def whisper():
    T = hugging_face()
    model = T.WhisperForConditionalGeneration(T.WhisperConfig(
        vocab_size=44, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, num_mel_bins=8, max_source_positions=8,
        max_target_positions=16, dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None))
    return Loss(model, use_cache=False), {"input_features": torch.randn(ROWS, 8, 16), "labels": ids(places=7)}


def vit():
    T = hugging_face()
    model = T.ViTForImageClassification(T.ViTConfig(
        hidden_size=24, num_hidden_layers=4, num_attention_heads=4, intermediate_size=40, image_size=16, patch_size=4,
        num_labels=5, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    return Loss(model), {"pixel_values": torch.randn(ROWS, 3, 16, 16), "labels": torch.randint(0, 5, (ROWS,))}


def clip():
    T = hugging_face()
    x = ids(43)
    x[:, -1] = 43
    model = T.CLIPModel(T.CLIPConfig(
        text_config={"vocab_size": 44, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "max_position_embeddings": 16, "eos_token_id": 43, "bos_token_id": 1,
                     "pad_token_id": 0},
        vision_config={"hidden_size": 16, "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "image_size": 8, "patch_size": 4}, projection_dim=12))
    return Loss(model, return_loss=True), {"input_ids": x, "pixel_values": torch.randn(ROWS, 3, 8, 8)}


def lora():
    from peft import LoraConfig, get_peft_model

    module, batch = llama()
    module.model = get_peft_model(module.model, LoraConfig(
        r=3, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"], lora_dropout=0.0))
    for name, p in module.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(p, std=0.1)
    return module, batch


def padded(of, left=False):
    """With a mask that hides some places at the end of every row, or before its text."""

    def make():
        module, batch = of()
        seen = torch.ones_like(batch["input_ids"])
        for row, n in enumerate([0, 1, 4, 2, 3, 0]):
            seen[row, slice(0, n) if left else slice(PLACES - n, PLACES)] = 0
        batch["labels"] = batch["labels"].masked_fill(seen == 0, -100) if "labels" in batch else None
        return module, batch | {"attention_mask": seen}

    make.__name__ = f"{of.__name__}_{'left_' if left else ''}padded"
    return make


_all = [mlp, nanogpt, vit, gpt2, llama, qwen3, gemma3, phi3, bert, t5, mixtral, qwen3_moe, mamba, whisper, lora, unet,
        resnet, towers, clip]
_more = [dropout, checkpointed, *map(padded, (gpt2, llama, qwen3, gemma3, phi3, mixtral, qwen3_moe)),
         padded(llama, left=True)]
ZOO = {make.__name__: make for make in _all}
MORE = {make.__name__: make for make in _more}
NEEDS = {"lora": "peft"} | dict.fromkeys(("mlp", "nanogpt", "unet", "resnet", "towers", "dropout", "checkpointed"))
MEET = ("resnet", "towers", "clip")  # rows of a batch meet: one microbatch


def make(name, dtype=torch.float64, seed=1):
    torch.manual_seed(seed)
    module, batch = {**ZOO, **MORE}[name]()
    convert = lambda v: v.to(dtype) if v.is_floating_point() else v
    return module.to(dtype).train(), {key: convert(v) for key, v in batch.items()}
