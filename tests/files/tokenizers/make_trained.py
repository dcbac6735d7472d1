#!/usr/bin/env python3
"""Writes trained/tokenizer.json: the vocabulary that the tokenizers library learns from trained/text.txt (0.23.3 was used)."""
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

folder = pathlib.Path(__file__).parent / "trained"
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator([(folder / "text.txt").read_text()], trainers.BpeTrainer(
    vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
