#!/usr/bin/env python3
"""Measures a Hugging Face directory with EleutherAI's lm-evaluation-harness (pip install lm_eval):

    python3 examples/lm_eval_stretto.py my-model lambada_openai,arc_easy
"""
import sys

import numpy as np
from lm_eval import simple_evaluate
from lm_eval.api.model import TemplateLM

import stretto


class Stretto(TemplateLM):
    def __init__(self, directory, **sections):
        super().__init__()
        self.trainer = stretto.Trainer(model={"from": directory}, train={"batch": 1}, optimizer={"name": "sgd"}, **sections)
        self.length = self.trainer.inputs["ids"].sizes[1]

    eot_token_id = 0  # what stands before a text that has no context

    def tok_encode(self, string, **_):
        return self.trainer.encode(string)

    def _loglikelihood_tokens(self, requests, **_):
        answers = []
        for _, context, continuation in requests:
            ids = (context + continuation)[-self.length - 1:]
            logits = self.trainer.logits([ids[:-1]])[0, -len(continuation):].astype(float)
            logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
            greedy = bool((logits.argmax(axis=1) == continuation).all())
            answers.append((logs[np.arange(len(continuation)), continuation].sum(), greedy))
        return answers

    def loglikelihood_rolling(self, requests, **_):
        texts = [self.tok_encode(r.args[0]) for r in requests]
        parts = [[(None, [self.eot_token_id], t[i:i + self.length]) for i in range(0, len(t), self.length)] for t in texts]
        return [sum(score for score, _ in self._loglikelihood_tokens(p)) for p in parts]

    def generate_until(self, requests, **_):
        texts = [self.trainer.generate(r.args[0], tokens=r.args[1].get("max_gen_toks", 64), temperature=0) for r in requests]
        return [min((t.split(u)[0] for u in r.args[1].get("until", [])), key=len, default=t) for t, r in zip(texts, requests)]


if __name__ == "__main__":
    print(simple_evaluate(Stretto(sys.argv[1]), tasks=sys.argv[2].split(","))["results"])
