"""The C interface with arguments that are wrong: an answer or an error, never a crash. STRETTO_LONG: fifty times as many."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(os.environ["STRETTO_SOURCE"])

PROGRAM = """
    import copy, ctypes, json, pathlib, random, re, sys
    import numpy as np
    from stretto._library import _Buffer, _library

    source, rounds, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    small = [f"--model.{k}={v}" for k, v in dict(family="gpt2", layers=2, width=16, heads=2, context=8, vocab=32).items()]
    bytes_model = small[:-1] + ["--train.steps=1", "--train.batch=2", f"--data.path={source}/examples/data/tales.txt",
                                "--log.dir=run"]
    open("cluster.toml", "w").write("ranks_per_node = 4\\nmemory = 1e9\\n[machine]\\nflops = 1e10\\n"
                                    "[inside]\\nlatency = 1e-6\\nbandwidth = 1e10\\n")
    batch = {name: {"dtype": "i32", "sizes": [4, 8], "buffer": 0} for name in ("ids", "targets")}
    schedule = {"schedule": "1f1b", "actors": 2, "microbatches": 2, "chunks": None}
    trainer = {"trainer": 1}
    right = {  # of every call arguments that work
        "config": {"run": "", "settings": small},
        "check_of_run": {"run": "", "settings": bytes_model},
        "check_of_schedule": schedule,
        "schedule_rows": schedule,
        "simulate_schedule": schedule | {"F": 1, "I": 1, "W": 1, "R": None, "message": 0},
        "schedule_picture": schedule | {"F": 1, "I": 1, "W": 1, "R": None, "message": 0},
        "simulate_run": {"run": "", "settings": small, "cluster": "cluster.toml"},
        "plan": {"run": "", "settings": small + ["--train.batch=4"], "cluster": "cluster.toml", "ranks": 2, "top": 2,
                 "quick": True},
        "train_run": {"run": "", "settings": bytes_model, "resume": None, "quiet": True},
        "trainer_open": {"run": "", "settings": small + ["--train.batch=4"]},
        "trainer_close": {"trainer": 2},
        "trainer_step": trainer | {"batch": batch},
        "trainer_evaluate": trainer | {"batch": batch, "sizes": {"batch": 4}},
        "trainer_read": trainer | {"name": "wte", "what": "parameter", "buffer": 1},
        "trainer_write": trainer | {"name": "wte", "array": {"dtype": "f32", "sizes": [32, 16], "buffer": 1}},
        "trainer_set_step": trainer | {"step": 3},
        "trainer_steps": trainer,
        "trainer_save": trainer | {"directory": "saved", "keep": 1},
        "trainer_load": trainer | {"directory": "saved"},
        "trainer_hash": trainer,
        "trainer_logits": trainer | {"ids": {"dtype": "i32", "sizes": [4, 8], "buffer": 0}, "buffer": 3},
        "trainer_generate": trainer | {"ids": [1, 2], "tokens": 3, "temperature": 1, "top_k": 2, "top_p": 0.5, "seed": 1,
                                       "stop": [3]},
        "trainer_encode": {"trainer": 3, "text": "abc", "tokenizer": None},
        "trainer_decode": {"trainer": 3, "ids": [97], "tokenizer": None},
        "trainer_export": trainer | {"directory": "exported", "dtype": "f32"},
        "eval": {"directory": "exported-bytes", "data": [f"{source}/examples/data/tales.txt"], "batches": 1,
                 "settings": ["--parallel.data=2"]},
        "convert": {"from": "exported-bytes", "to": "converted", "adapter": False},
        "verify": {"run": "", "settings": bytes_model, "steps": 1},
    }
    names = re.findall(r"CALL\\((\\w+)\\)", (source / "python/calls.def").read_text())
    assert set(names) == set(right), set(names) ^ set(right)

    arrays = [np.ones((4, 8), np.int32), np.zeros((32, 16), np.float32), np.zeros(0, np.float32),
              np.zeros((4, 8, 32), np.float32)]

    def call(name, arguments):
        with open("last", "w") as last:
            last.write(f"{name} {arguments}")
        buffers = (_Buffer * len(arrays))(*((a.ctypes.data, a.nbytes) for a in arrays))
        answer = _library.stretto_call(name.encode(), arguments.encode(), buffers, len(arrays))
        read = json.loads(ctypes.string_at(answer))
        _library.stretto_free(answer)
        if "error" in read:
            for fault in read["error"]["faults"]:
                assert fault["where"] != "internal" and ".cpp:" not in fault["where"], fault
        return read

    values = [-1, 0, 1, 3, 2**31, 2**32 + 2, 2**63 - 1, -2**63, 1.5, 1e300, "", "x", "f64", "gradient", "m", None, True, [],
              {}, [1, 2], ["a"], {"batch": 2}, {"": None}, [[]], {"dtype": 1}, "a\\0b", [None], {"buffer": 2}]

    def places(value, path=()):
        yield path
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield from places(inner, path + (key,))

    def changed(arguments, dice):
        arguments = copy.deepcopy(arguments)
        for _ in range(dice.choice([1, 1, 2])):
            path = dice.choice(list(places(arguments)))
            if not path:
                if dice.random() < 0.1:
                    return copy.deepcopy(dice.choice(values))
                continue
            within = arguments
            for key in path[:-1]:
                within = within[key]
            what = dice.random()
            if what < 0.2:
                del within[path[-1]]
            elif what < 0.3 and isinstance(within, dict):
                within[dice.choice(["", "sizes", "batch", "more"])] = within.pop(path[-1])
            else:
                within[path[-1]] = copy.deepcopy(dice.choice(values))
        return arguments

    for settings in (right["trainer_open"]["settings"], small, bytes_model):
        opened = call("trainer_open", json.dumps({"run": "", "settings": settings}))
    assert opened["result"]["trainer"] == 3, opened
    assert "result" in call("trainer_export", json.dumps({"trainer": 3, "directory": "exported-bytes"}))
    for name in names:
        read = call(name, json.dumps(right[name]))
        assert "result" in read, (name, read)
    errors = 0
    for name in sorted(names, key="trainer_close".__eq__):  # which may well close the trainer of all the others
        dice = random.Random(f"{seed} {name}")
        dear = name in ("plan", "train_run", "trainer_open", "check_of_run", "verify", "eval", "convert")
        for _ in range(rounds if not dear else max(rounds // 8, 1)):
            errors += "error" in call(name, json.dumps(changed(right[name], dice)))
    for name, text in (("nothing", "{}"), ("config", "{"), ("config", "[]"), ("trainer_step", "3"), ("config", "")):
        errors += "error" in call(name, text)
    print("errors", errors)
"""


class Fuzz(unittest.TestCase):
    def test_wrong_arguments_are_answered(self):
        rounds = 8000 if os.environ.get("STRETTO_LONG") else 60
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), str(SOURCE), str(rounds), "1"], text=True,
                                  capture_output=True, cwd=folder)
            last = pathlib.Path(folder, "last")
            self.assertEqual(done.returncode, 0, f"{done.stderr[-2000:]}\n{last.read_text() if last.exists() else ''}")
        self.assertGreater(int(done.stdout.split()[-1]), rounds)


if __name__ == "__main__":
    unittest.main()
