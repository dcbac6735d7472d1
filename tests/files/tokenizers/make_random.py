#!/usr/bin/env python3
"""Writes random/<style>/{tokenizer,expected}.json: random texts with the ids that the tokenizers library gives them.

    make_random.py [FOLDER [TEXTS]]      (needs the package tokenizers; 0.23.3 was used)

Styles: those beside this file, and some made from them with other steps and added tokens.
"""
import copy
import json
import pathlib
import random
import sys

import tokenizers

HERE = pathlib.Path(__file__).parent
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
SPACES = [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x85", "\u180e", "\u200b"]
WORDS = ["the", "The", " the", "don't", "WE'LL", "I'm", "it's", "he'D", "x'\u017f", "'re", "naïve", "Straße", "日本語", "Привет", "العربية",
         "हिन्दी", "🙂", "👩‍👩‍👧", "12345", "3.14159", "٣٤", "Ⅷ", "½", "e\u0301", "ĳ", "Ġ", "Ċ", "<|endoftext|>", "<|begin_of_text|>", "<|end", "|>", "<mask>",
         "<word>", "<word", "==", "...", "!?", "https://a.b/c?d=e&f", "\U00011f04", "\U000323af", "\x00", "\x7f", "\ufeff", "\uffff"]


def texts(count, seed):
    r = random.Random(seed)
    for _ in range(count):
        parts = []
        for _ in range(r.randint(1, 12)):
            kind = r.random()
            if kind < 0.4:
                parts.append(r.choice(WORDS))
            elif kind < 0.65:
                parts.append(r.choice(SPACES))
            elif kind < 0.8:
                parts.append("".join(r.choice(LETTERS) for _ in range(r.randint(1, 9))))
            elif kind < 0.85:
                parts.append(r.choice(["a", "ab", " ", "\n", "7", "-"]) * r.randint(2, 120))
            else:
                c = r.randrange(0x110000)
                parts.append(chr(c) if not 0xD800 <= c <= 0xDFFF else "?")
        yield "".join(parts)


def added(id, content, **options):
    token = {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return token | options


def styles():
    gpt2, llama3 = (json.loads((HERE / f"{name}_style/tokenizer.json").read_text()) for name in ("gpt2", "llama3"))
    yield "gpt2", gpt2
    yield "llama3", llama3
    other = copy.deepcopy(gpt2)
    other["pre_tokenizer"]["add_prefix_space"] = True
    other["added_tokens"] += [added(512, "<mask>", lstrip=True), added(513, "<word>", single_word=True, special=False, normalized=True),
                              added(514, "<|end", rstrip=True), added(515, "日本", normalized=True, special=False)]
    yield "prefix_and_strip", other
    other = copy.deepcopy(llama3)
    split = other["pre_tokenizer"]["pretokenizers"][0]
    other["pre_tokenizer"]["pretokenizers"] = [{"type": "Digits", "individual_digits": True},
                                               {"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": False}, split,
                                               {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]
    other["model"]["ignore_merges"] = False
    other["model"]["merges"] = [" ".join(m) for m in other["model"]["merges"]]
    yield "steps", other
    other = copy.deepcopy(gpt2)
    other["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"\p{L}+|\p{N}{1,3}|[\p{P}\p{S}]+| +|[\r\n]+"}, "behavior": "Removed", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
    yield "removed", other


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "random"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    for seed, (name, style) in enumerate(styles()):
        text = json.dumps(style, ensure_ascii=False)
        library = tokenizers.Tokenizer.from_str(text)
        cases = []
        for t in texts(count, seed):
            ids = library.encode(t, add_special_tokens=False).ids
            cases.append({"text": t, "ids": ids, "decoded": library.decode(ids, skip_special_tokens=False)})
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "tokenizer.json").write_text(text)
        out = {"vocab_size": library.get_vocab_size(), "cases": cases}
        (folder / name / "expected.json").write_text(json.dumps(out, ensure_ascii=False) + "\n")


main()
