"""Imported models against the families written by hand: names of dims, collectives of a layout, nodes of the graph."""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch

import stretto
import zoo

EXECUTABLE = os.environ.get("STRETTO_EXECUTABLE", "stretto")
SIZES = {"layers": 2, "width": 24, "heads": 4, "context": 12, "vocab": 44}
FAMILIES = {
    "llama": {"family": "llama", "kv_heads": 2, "ff": 40, "tied": False},
    "gpt2": {"family": "gpt2", "ff": 96},
    "mixtral": {"family": "mixtral", "kv_heads": 2, "ff": 40, "tied": False, "experts": 4, "top_k": 2},
}
LAYOUTS = [["tensor=2"], ["tensor=2", "sequence=true"], ["context=2"], ["data=2", "zero=1"], ["depth=2"]]


def transformers_model(name):
    T = zoo.hugging_face()
    small = zoo.SMALL | {"num_hidden_layers": 2}
    if name == "llama":
        return T.LlamaForCausalLM(T.LlamaConfig(**small))
    if name == "gpt2":
        return T.GPT2LMHeadModel(T.GPT2Config(vocab_size=44, n_positions=12, n_embd=24, n_layer=2, n_head=4,
                                              resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    return T.MixtralForCausalLM(T.MixtralConfig(**small, num_local_experts=4, num_experts_per_tok=2,
                                                experts_implementation="batched_mm"))


def show(what, model, layout=()):
    settings = [f"--model.{k}={str(v).lower()}" for k, v in model.items()] + [f"--parallel.{s}" for s in layout]
    return subprocess.run([EXECUTABLE, "show", *settings, "--train.batch=8", what], check=True, capture_output=True,
                          text=True).stdout


def collectives(text):
    """{(kind, axis, ranks, bytes, when): count}. Of parameters only the sum of bytes counts: mixtral's experts come in
    fewer of them, and so do the squared norms, one number per parameter."""
    found = collections.Counter()
    lines = text.split("collectives;")[1].split("\n")[2:]
    for line in lines:
        words = line.split()
        if len(words) < 6 or not words[3].isdigit():
            break
        kind, over, ranks, count, size, when = words[:6]
        if "squared norms" in line or ".load" in line:  # the families' own metric
            continue
        if when == "step" or not any(w in line for w in ("rename", "max", "sub", "sum", "contract", "choose")):
            found[kind, over, ranks, "all", when] += int(count) * int(size)
        else:
            found[kind, over, ranks, size, when] += int(count)
    return found


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            zoo.hugging_face()
        except ImportError:
            raise unittest.SkipTest("transformers is not installed") from None
        cls.folder = tempfile.TemporaryDirectory()
        cls.models = {}
        ids = torch.randint(3, 44, (8, 12))
        for name in FAMILIES:
            module = zoo.Loss(transformers_model(name), use_cache=False)
            cls.models[name] = stretto.from_torch(module, {"input_ids": ids, "labels": ids}, check=True)
            cls.models[name].save(pathlib.Path(cls.folder.name, f"{name}.json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def both(self, name):
        return {"graph": pathlib.Path(self.folder.name, f"{name}.json")}, SIZES | FAMILIES[name]

    def test_collectives_are_those_of_the_families(self):
        for name in FAMILIES:
            for layout in LAYOUTS + ([["expert=2"]] if name == "mixtral" else []):
                with self.subTest(name, layout=layout):
                    imported, family = (collectives(show("layout", m, layout)) for m in self.both(name))
                    self.assertEqual(imported, family)
                    self.assertTrue(imported)

    def test_nodes_are_hardly_more_than_the_families(self):
        for name in FAMILIES:
            imported, family = (len(show("graph", m).split("\n")) for m in self.both(name))
            self.assertLess(imported, 1.2 * family, name)

    def test_dims_have_the_names_of_the_families(self):
        dims = lambda model, key: next(p.dims for name, p in self.models[model].parameters.items() if name.endswith(key))
        self.assertEqual(dims("llama", "q_proj.weight"), ("kv", "group", "head", "model"))
        self.assertEqual(dims("llama", "k_proj.weight"), ("kv", "head", "model"))
        self.assertEqual(dims("llama", "o_proj.weight"), ("model", "kv", "group", "head"))
        self.assertEqual(dims("llama", "up_proj.weight"), ("ff", "model"))
        self.assertEqual(dims("llama", "lm_head.weight"), ("vocab", "model"))
        self.assertEqual(dims("gpt2", "c_attn.weight"), ("model", "parts", "heads", "head"))
        self.assertEqual(dims("gpt2", "c_fc.weight"), ("model", "ff"))
        self.assertEqual(dims("gpt2", "wpe.weight"), ("position", "model"))
        self.assertEqual(dims("mixtral", "down_proj"), ("experts", "model", "ff_x"))


if __name__ == "__main__":
    unittest.main()
