"""The installed package: training on numpy batches, schedules, plans, errors, metrics, Ctrl-C."""

import concurrent.futures
import copy
import importlib.util
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import numpy as np

import stretto

SOURCE = pathlib.Path(os.environ["STRETTO_SOURCE"])
SMALL = {"family": "gpt2", "layers": 2, "width": 16, "heads": 2, "context": 8, "vocab": 32}


def batch_for(trainer, seed=0, vocab=32):
    random = np.random.default_rng(seed)
    return {name: random.integers(0, vocab, i.sizes).astype(i.dtype) for name, i in trainer.inputs.items()}


def tensors(path):
    """Of a safetensors file."""
    data = path.read_bytes()
    head = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}
    return {name: np.frombuffer(data[head + t["data_offsets"][0]:head + t["data_offsets"][1]],
                                types[t["dtype"]]).reshape(t["shape"])
            for name, t in json.loads(data[8:head]).items() if name != "__metadata__"}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)


class BasicExample(unittest.TestCase):
    """JaxPP's basic example: two layers per rank, width 24, eight microbatches of 16 rows, adam at 0.005. A step with a
    pipeline must do what a step without one does; here that holds bit by bit, for losses, parameters and states."""

    def trainers(self, ranks):
        common = {
            "model": {"family": "gpt2", "layers": 2 * ranks, "width": 24, "ff": 72, "heads": 12, "context": 32,
                      "vocab": 64},
            "train": {"batch": 128, "microbatches": 8, "clip": 0},
            "optimizer": {"name": "adamw", "lr": 0.005, "decay": 0, "betas": [0.9, 0.999], "schedule": "constant"},
        }
        serial = stretto.Trainer(**common)
        piped = stretto.Trainer(**common, parallel={"pipe": ranks, "schedule": "1f1b"})
        return serial, piped

    def test_serial_and_pipelined_are_the_same(self):
        serial, piped = self.trainers(2)
        batch = batch_for(serial, vocab=64)
        first = serial.step(**batch)
        self.assertEqual(first.loss, piped.step(**batch).loss)
        for name in serial.parameters:
            np.testing.assert_array_equal(serial.parameter(name), piped.parameter(name))
            np.testing.assert_array_equal(serial.gradient(name), piped.gradient(name))
            for state in ("m", "v"):
                np.testing.assert_array_equal(serial.state(name, state), piped.state(name, state))
        for _ in range(4):
            self.assertEqual(serial.step(**batch).loss, piped.step(**batch).loss)
        self.assertEqual(serial.parameters_hash(), piped.parameters_hash())
        self.assertLess(serial.step(**batch).loss, first.loss)


class Training(Folder):
    def test_inputs_and_parameters_are_described(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4, "microbatches": 2})
        self.assertEqual(trainer.inputs["ids"].sizes, (4, 8))
        self.assertEqual(trainer.inputs["ids"].dims, ("batch", "seq"))
        self.assertEqual(trainer.inputs["ids"].dtype, np.int32)
        self.assertEqual(trainer.parameter("wte").shape, (32, 16))
        self.assertEqual(trainer.ranks, 1)

    def test_any_family_and_layout(self):
        for family in ("llama", "mixtral", "mlp"):
            losses = []
            for parallel in ({}, {"pipe": 2}, {"data": 2}):
                trainer = stretto.Trainer(model=SMALL | {"family": family}, train={"batch": 4, "microbatches": 2,
                                                                                   "dtype": "f64"}, parallel=parallel)
                losses.append([trainer.step(**batch_for(trainer)).loss for _ in range(2)])
            np.testing.assert_allclose(losses, [losses[0]] * 3, rtol=1e-10)

    def test_save_and_load_under_another_layout(self):
        first = stretto.Trainer(model=SMALL, train={"batch": 4})
        batch = batch_for(first)
        first.step(**batch)
        first.save(self.path / "mine")
        second = stretto.Trainer(model=SMALL, train={"batch": 4}, parallel={"pipe": 2})
        self.assertFalse(second.load(self.path / "nothing"))
        self.assertTrue(second.load(self.path / "mine"))
        self.assertEqual(first.parameters_hash(), second.parameters_hash())
        self.assertEqual(first.step(**batch).step, second.step(**batch).step)

    def test_evaluation_and_parameters_of_ones_own(self):
        with stretto.Trainer(model=SMALL, train={"batch": 4}) as trainer:
            one = {name: array[:1] for name, array in batch_for(trainer).items()}
            before = trainer.evaluate(sizes={"batch": 1}, **one).loss
            trainer.set_parameter("wte", np.zeros((32, 16)))
            self.assertNotEqual(before, trainer.evaluate(sizes={"batch": 1}, **one).loss)
            self.assertAlmostEqual(trainer.evaluate(sizes={"batch": 1}, **one).loss, np.log(32), places=5)
        with self.assertRaisesRegex(stretto.Error, "has been closed"):
            trainer.step(**one)

    def test_a_run_and_its_metrics(self):
        done = stretto.train(model=SMALL | {"family": "mixtral", "vocab": 256}, train={"steps": 3, "batch": 4}, quiet=True,
                             data={"path": str(SOURCE / "examples/data/tales.txt")},
                             log={"dir": str(self.path / "run"), "every": 1})
        self.assertEqual(done.steps, 3)
        metrics = stretto.metrics(done.directory)
        self.assertEqual(metrics["step"], [1, 2, 3])
        self.assertEqual(metrics["loss"][-1], done.last_loss)
        load = metrics["h.1.load"][-1]  # of its experts: every token of a step chooses two
        self.assertEqual(sum(load), 4 * 8 * 2)
        self.assertGreaterEqual(metrics["imbalance"][-1], max(load) * len(load) / sum(load))
        again = stretto.train(resume=done.directory, train={"steps": 4}, quiet=True)
        self.assertEqual(again.steps, 4)


class Models(Folder):
    """In and out of directories, and what models say."""

    TINY = SOURCE / "tests/files/hf_models"
    ONE = {"train": {"batch": 2}, "optimizer": {"schedule": "constant"}}

    def test_from_a_directory_and_back(self):
        for name in ("qwen3", "olmo2", "qwen3_moe_sparse", "phi3"):
            with self.subTest(name):
                trainer = stretto.Trainer(model={"from": self.TINY / name}, **self.ONE)
                trainer.step(**batch_for(trainer, vocab=29))
                trainer.export(self.path / name)
                again = stretto.Trainer(model={"from": self.path / name, "pad_vocab": 2}, parallel={"tensor": 2},
                                        **self.ONE)
                self.assertEqual(again.parameters_hash(), trainer.parameters_hash())
                with self.assertRaisesRegex(stretto.Error, "exists and is not empty"):
                    trainer.export(self.path / name)

    def test_what_is_saved_can_be_read_by_all(self):
        trainer = stretto.Trainer(model=SMALL | {"vocab": 256, "family": "llama"}, train={"batch": 4}, parallel={"pipe": 2})
        trainer.step(**batch_for(trainer, vocab=256))
        trainer.save(self.path / "mine")
        text = SOURCE / "examples/data/tales.txt"
        found = stretto.eval(self.path / "mine", text, batches=2)
        self.assertEqual(stretto.convert(self.path / "mine", self.path / "hf"), "Hugging Face directory")
        self.assertAlmostEqual(stretto.eval(self.path / "hf", [text], batches=2, parallel={"data": 2}).loss, found.loss)
        self.assertGreater(found.bits_per_byte, 1)
        self.assertEqual(stretto.convert(self.path / "hf", self.path / "checkpoint"), "checkpoint")
        again = stretto.Trainer(model={"from": self.path / "hf"}, train={"batch": 4})
        self.assertEqual(again.parameters_hash(), trainer.parameters_hash())

    def test_logits_are_those_of_transformers(self):
        for name in ("qwen3", "gemma3", "gpt_oss"):
            expected = tensors(self.TINY / name / "expected.safetensors")
            trainer = stretto.Trainer(model={"from": self.TINY / name}, train={"batch": 2, "dtype": "f64"},
                                      parallel={"pipe": 2})
            logits = trainer.logits(expected["ids"])
            self.assertEqual(logits.dtype, np.float64)
            np.testing.assert_allclose(logits, expected["logits"], atol=1e-8, err_msg=name)
            batch = {"ids": expected["ids"], "targets": expected["ids"]}
            np.testing.assert_array_equal(trainer.logits(**batch), logits)
            with self.assertRaisesRegex(stretto.Error, "logits are made of ids alone"):
                trainer.logits(**batch, segments=expected["ids"])
            shorter = trainer.logits(expected["ids"][:1, :5])
            np.testing.assert_allclose(shorter, logits[:1, :5], atol=1e-12)
            greedy = trainer.generate(expected["ids"][0, :4], tokens=8, temperature=0)
            self.assertEqual(greedy, expected["greedy"].reshape(-1).tolist(), name)
            trainer.set_parameter("wte", np.zeros(trainer.parameters["wte"].sizes))
            self.assertGreater(abs(trainer.logits(expected["ids"]) - logits).max(), 1e-3)  # nothing is remembered

    def test_text_goes_in_and_out(self):
        trainer = stretto.Trainer(model=SMALL | {"vocab": 256}, train={"batch": 4})
        self.assertEqual(trainer.encode("aé"), [97, 0xC3, 0xA9])
        self.assertEqual(trainer.decode([97, 0xC3, 0xA9]), "aé")
        text = trainer.generate("ab", tokens=4, seed=3)
        self.assertIsInstance(text, str)
        self.assertEqual(text, trainer.generate("ab", tokens=4, seed=3))
        self.assertNotEqual(text, trainer.generate("ab", tokens=4, seed=4))
        with self.assertRaisesRegex(stretto.Error, "outside of a vocabulary"):
            trainer.decode([256])
        with self.assertRaisesRegex(stretto.Error, "rows have 9 ids, and the model's context is 8"):
            trainer.logits(np.zeros((1, 9), np.int32))

    def test_adapters(self):
        trainer = stretto.Trainer(model={"from": self.TINY / "qwen3"}, finetune={"lora": {"rank": 2}}, **self.ONE)
        batch = batch_for(trainer, vocab=29)
        for _ in range(3):
            trainer.step(**batch)
        trainer.export_adapter(self.path / "adapter")
        trainer.export(self.path / "merged")
        adapted = stretto.Trainer(model={"from": self.TINY / "qwen3"}, finetune={"adapter": self.path / "adapter"}, **self.ONE)
        merged = stretto.Trainer(model={"from": self.path / "merged"}, **self.ONE)
        np.testing.assert_allclose(adapted.logits(batch["ids"]), merged.logits(batch["ids"]), atol=1e-5)
        np.testing.assert_allclose(trainer.logits(batch["ids"]), merged.logits(batch["ids"]), atol=1e-5)

    def test_adapters_that_peft_would_drop(self):
        """tests/files/peft/make.py experts tries which those are."""
        base = {"model": {"from": self.TINY / "qwen3_moe_sparse"}, "finetune": {"lora": {"rank": 2}}} | self.ONE
        with stretto.Trainer(**base) as all_of_them, self.assertRaisesRegex(stretto.Error, "PEFT takes every 'gate_proj'"):
            all_of_them.export_adapter(self.path / "adapter")
        self.assertFalse((self.path / "adapter").exists())
        with stretto.Trainer(**base, checkpoint={"export_adapter": self.path / "adapter"}) as exportable:
            exportable.export_adapter(self.path / "adapter")
            self.assertFalse([name for name in exportable.parameters if ".gate.lora" in name])
        whole = stretto.config(**base, checkpoint={"export_adapter": self.path / "another"})
        self.assertIn('targets = ["exportable"]', whole)
        same = stretto.config(**base | {"model": {"from": self.TINY / "qwen3"}},
                              checkpoint={"export_adapter": self.path / "another"})
        self.assertIn('targets = ["all"]', same)

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not there")
    def test_peft_computes_what_is_exported(self):
        import peft
        import torch
        import transformers
        for name in ("qwen3_moe_sparse", "glm4_moe", "deepseek_v2", "deepseek_v3", "qwen2_moe", "llama4", "phi3"):
            with self.subTest(name):
                base, adapter = self.TINY / name, self.path / name
                trainer = stretto.Trainer(model={"from": base}, finetune={"lora": {"rank": 2}}, train={"batch": 2, "dtype": "f64"},
                                          optimizer={"lr": 0.1, "schedule": "constant"},
                                          checkpoint={"export_adapter": adapter})
                batch = batch_for(trainer, vocab=29)
                for _ in range(3):
                    trainer.step(**batch)
                trainer.export_adapter(adapter)
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    base, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64)
                adapted = peft.PeftModel.from_pretrained(model, adapter).double().eval()
                ids = batch["ids"][:1, :12]
                with torch.no_grad():
                    theirs = adapted(torch.tensor(ids.astype(np.int64))).logits.numpy()
                np.testing.assert_allclose(trainer.logits(ids), theirs, atol=1e-5)
                with adapted.disable_adapter(), torch.no_grad():
                    plain = adapted(torch.tensor(ids.astype(np.int64))).logits.numpy()
                self.assertGreater(abs(plain - theirs).max(), 1e-2)

    def test_verify(self):
        sections = {"model": SMALL | {"vocab": 256}, "train": {"batch": 4, "microbatches": 2},
                    "data": {"path": str(SOURCE / "examples/data/tales.txt")}}
        verified = stretto.verify(steps=2, parallel={"pipe": 2}, **sections)
        self.assertTrue(verified.equal, verified.text)
        self.assertEqual(verified.tolerance, 0)

    def test_pictures_and_words(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4, "microbatches": 2}, parallel={"pipe": 2})
        self.assertRegex(repr(trainer), r"<stretto.Trainer: gpt2.* parameters; pipe=2>")
        step, picture = trainer.record(**batch_for(trainer))
        self.assertEqual(step.step, 1)
        for picture in (picture, stretto.schedule("1f1b", actors=2, microbatches=2),
                        stretto.schedule("zb-v", actors=2, microbatches=4).picture(F=2)):
            self.assertTrue(picture._repr_svg_().startswith("<svg"))
        trainer.close()
        self.assertIn("closed", repr(trainer))

    def test_steps_of_a_run_are_told(self):
        rows = []
        for more in ({"log": {"dir": str(self.path / "run")}}, {}):
            before = os.getcwd()
            os.chdir(self.path)
            try:
                done = stretto.train(model=SMALL | {"vocab": 256}, train={"steps": 3, "batch": 4}, quiet=True,
                                     on_step=rows.append, data={"path": str(SOURCE / "examples/data/tales.txt")}, **more)
            finally:
                os.chdir(before)
            self.assertEqual([row["step"] for row in rows], [1, 2, 3])
            self.assertEqual(rows[-1]["loss"], done.last_loss)
            rows.clear()
        with self.assertRaises(ZeroDivisionError):
            stretto.train(model=SMALL | {"vocab": 256}, train={"steps": 3, "batch": 4}, quiet=True,
                          on_step=lambda row: 1 / 0, log={"dir": str(self.path / "other")},
                          data={"path": str(SOURCE / "examples/data/tales.txt")})

    def test_reading_ahead(self):
        self.assertEqual(list(stretto.ahead(range(5))), list(range(5)))

        def broken():
            yield 1
            raise ValueError("here")
        read = stretto.ahead(broken())
        self.assertEqual(next(read), 1)
        with self.assertRaisesRegex(ValueError, "here"):
            next(read)
        made = []
        for item in stretto.ahead(made.append(i) or i for i in range(100)):
            if item == 3:
                break
        self.assertLess(len(made), 10)


class Lives(Folder):
    """What Python does with objects: copies, forks, ends."""

    def test_a_trainer_is_not_copied(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4})
        for copied in (copy.copy, copy.deepcopy, pickle.dumps, lambda t: copy.deepcopy({"t": [t]})):
            with self.assertRaisesRegex(stretto.Error, "cannot be copied"):
                copied(trainer)
        self.assertGreater(trainer.step(**batch_for(trainer)).loss, 0)

    def test_an_error_goes_from_one_process_to_another(self):
        with self.assertRaises(stretto.Error) as raised:
            stretto.Trainer(model={"layer": 2})
        there = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((str(there), there.faults, there.code),
                         (str(raised.exception), raised.exception.faults, raised.exception.code))

    def ends(self, program, *, code=0):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60,
                              cwd=self.path)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    OPEN = f"""
        import numpy as np, os, stretto, sys
        ids = np.zeros((4, 8), np.int32)
        def made():
            return stretto.Trainer(model={SMALL!r}, train={{"batch": 4, "microbatches": 2}}, parallel={{"pipe": 2}})
        trainer = made()
        trainer.step(ids=ids, targets=ids)
    """

    def test_a_fork_ends_and_leaves_the_trainer_alone(self):
        for ending in ("del trainer", "pass", "trainer.close()", "sys.exit()"):
            with self.subTest(ending):
                said = self.ends(self.OPEN + f"""
        if (child := os.fork()) == 0:
            try:
                trainer.step(ids=ids, targets=ids)
            except stretto.Error as e:
                print("a fork" in e.what and "multiprocessing" in e.hint, flush=True)
            {ending}
            sys.exit()
        print(os.waitpid(child, 0)[1], trainer.step(ids=ids, targets=ids).step)
                """)
                self.assertEqual(said, "True\n0 2\n")

    def test_a_fork_answers_what_needs_no_trainer(self):
        said = self.ends(self.OPEN + """
        if (child := os.fork()) == 0:
            print(len(stretto.schedule("1f1b", actors=2, microbatches=2)), flush=True)
            try:
                made()
            except stretto.Error as e:
                print("a fork" in e.what, flush=True)
            sys.exit()
        print(os.waitpid(child, 0)[1])
        """)
        self.assertEqual(said, "2\nTrue\n0\n")

    def test_programs_end_with_trainers_open(self):
        self.assertEqual(self.ends(self.OPEN + "\n        sys.trainer = trainer"), "")

    def test_threads_that_share_a_trainer_wait_for_each_other(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4, "microbatches": 2}, parallel={"pipe": 2})
        batch = batch_for(trainer)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            steps = [r.step for r in pool.map(lambda _: trainer.step(**batch), range(20))]
        self.assertEqual(sorted(steps), list(range(1, 21)))


class Schedules(unittest.TestCase):
    OWN = [["0F0", "0F1", "0B0", "0B1"], [(1, "F", 0), (1, "B", 0), (1, "F", 1), (1, "B", 1)]]

    def test_rows_are_what_a_name_means(self):
        self.assertEqual(stretto.schedule("1f1b", actors=2, microbatches=2), stretto.schedule(self.OWN))
        self.assertEqual(stretto.check_schedule("1f1b", actors=4, microbatches=8).peak, [4, 3, 2, 1])
        self.assertEqual(stretto.simulate_schedule("1f1b", actors=4, microbatches=8).makespan, 30)

    def test_a_list_of_actions_trains_with_the_same_bits(self):
        hashes = []
        for parallel in ({}, {"pipe": 2, "schedule": self.OWN}):
            trainer = stretto.Trainer(model=SMALL, train={"batch": 4, "microbatches": 2}, parallel=parallel)
            trainer.step(**batch_for(trainer))
            hashes.append(trainer.parameters_hash())
        self.assertEqual(hashes[0], hashes[1])

    def test_a_list_is_kept_with_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            sections = {"model": SMALL | {"vocab": 256}, "data": {"path": str(SOURCE / "examples/data/tales.txt")},
                        "log": {"dir": folder + "/run"}, "parallel": {"pipe": 2, "schedule": self.OWN}}
            done = stretto.train(train={"steps": 1, "batch": 4, "microbatches": 2}, quiet=True, **sections)
            self.assertEqual(stretto.train(resume=done.directory, train={"steps": 2}, quiet=True).steps, 2)

    def test_faults_of_a_list_name_no_file(self):
        for wrong in ([["0F0", "0B0"], ["1B0", "1F0"]], [["0F0", "what"], ["1F0"]], [], [[]]):
            for mistake in (lambda: stretto.check_schedule(wrong), lambda: stretto.Trainer(
                    model=SMALL, train={"batch": 4, "microbatches": 2}, parallel={"pipe": 2, "schedule": wrong})):
                with self.subTest(wrong), self.assertRaises(stretto.Error) as raised:
                    mistake()
                self.assertNotIn("tmp", str(raised.exception))
                self.assertNotIn("file", str(raised.exception))
                self.assertIn("schedule", str(raised.exception))

    def test_all_faults_of_a_wrong_one(self):
        with self.assertRaises(stretto.Error) as raised:
            stretto.check_schedule([["0F0", "0B0"], ["1B0", "1F0"]])
        self.assertIn("1B0", str(raised.exception))
        self.assertTrue(raised.exception.hint)
        self.assertGreaterEqual(len(raised.exception.faults), 1)


class Predictions(Folder):
    CLUSTER = "ranks_per_node = 4\nmemory = 1e9\n[machine]\nflops = 1e10\n" \
              "[inside]\nlatency = 1e-6\nbandwidth = 1e10\n"

    def test_simulate_and_plan(self):
        cluster = self.path / "cluster.toml"
        cluster.write_text(self.CLUSTER)
        sections = {"model": SMALL | {"layers": 4}, "train": {"batch": 8}}
        found = stretto.plan(cluster=cluster, ranks=4, top=3, **sections)
        best = found.best[0]
        self.assertGreater(found.tried, 3)
        self.assertLessEqual(best.seconds, found.best[-1].seconds)
        train = sections["train"] | best.settings["train"]
        step = stretto.simulate(cluster=cluster, model=sections["model"], train=train,
                                parallel=best.settings["parallel"])
        self.assertEqual(step.ranks, 4)
        self.assertAlmostEqual(sum(step.spent.values()), step.seconds, delta=1e-6 * step.seconds)
        self.assertAlmostEqual(step.seconds, best.seconds, delta=0.02 * best.seconds)

    def test_a_plan_is_the_one_of_the_command_line(self):
        """Recompute per stage comes along: what is priced is what is returned."""
        cluster = self.path / "cluster.toml"
        cluster.write_text(self.CLUSTER.replace("memory = 1e9", "memory = 2.8e6"))
        sections = {"model": SMALL | {"layers": 8, "width": 64, "context": 64}, "train": {"batch": 16},
                    "parallel": {"schedule": "1f1b"}, "plan": {"pipe": [4]}}
        best = stretto.plan(cluster=cluster, ranks=4, top=3, **sections).best
        self.assertTrue(any(isinstance(p.settings["parallel"]["recompute"], list) for p in best))
        for planned in best:
            found = planned.settings
            again = stretto.simulate(cluster=cluster, model=sections["model"], train=sections["train"] | found["train"],
                                     parallel=found["parallel"])
            self.assertAlmostEqual(again.seconds, planned.seconds, delta=1e-9 * planned.seconds, msg=planned.text)
            self.assertAlmostEqual(again.bytes, planned.bytes, delta=1, msg=planned.text)

    def test_config_and_check(self):
        self.assertIn("layers = 2", stretto.config(model=SMALL))
        said = stretto.check(model=SMALL | {"vocab": 256}, data={"path": str(SOURCE / "examples/data/tales.txt")})
        self.assertIn("gpt2", said)


class Errors(unittest.TestCase):
    def test_they_have_a_place_and_a_hint(self):
        with self.assertRaises(stretto.Error) as raised:
            stretto.Trainer(model={"layer": 2})
        error = raised.exception
        self.assertEqual(error.where, "arguments")
        self.assertEqual(error.what, "key 'model.layer' is unknown")
        self.assertEqual(error.hint, "did you mean 'model.layers'?")
        self.assertEqual(str(error), f"[{error.where}] {error.what}; hint: {error.hint}")
        self.assertEqual(error.code, 1)

    def test_arguments_of_another_type(self):
        cases = {
            "should be a whole number": lambda: stretto.schedule("1f1b", actors=1.5, microbatches=2),
            "'F' is nan": lambda: stretto.simulate_schedule("1f1b", actors=2, microbatches=2, F=float("nan")),
            "an action is 3": lambda: stretto.check_schedule([[3]]),
            "an action is (0, 'F')": lambda: stretto.check_schedule([[(0, "F")]]),
        }
        for what, mistake in cases.items():
            with self.subTest(what), self.assertRaises(stretto.Error) as caught:
                mistake()
            self.assertIn(what, caught.exception.what)
            self.assertTrue(caught.exception.hint)
        self.assertEqual(len(stretto.schedule("1f1b", actors=np.int64(2), microbatches=2)), 2)

    def test_hints_are_in_the_words_of_python(self):
        for mistake in (lambda: stretto.schedule("1f1b"), lambda: stretto.plan(model=SMALL, train={"batch": 3, "microbatches": 2}),
                        lambda: stretto.Trainer(model=SMALL, train={"batch": 4}).step()):
            with self.assertRaises(stretto.Error) as raised:
                mistake()
            self.assertTrue(raised.exception.hint)
            for foreign in ("--", "::", "command line", "wait()"):
                self.assertNotIn(foreign, str(raised.exception))

    def test_numbers_that_the_type_does_not_hold(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4})
        ids = batch_for(trainer)["ids"].astype(np.int64)
        self.assertGreater(trainer.step(ids=ids, targets=ids).loss, 0)
        for wrong in (2**32 + 5, -2**31 - 1):
            far = ids.copy()
            far[2, 7] = wrong
            with self.assertRaises(stretto.Error) as raised:
                trainer.step(ids=far, targets=ids)
            self.assertEqual((raised.exception.where, raised.exception.what),
                             ("ids", f"[2, 7] is {wrong}, which int32 does not hold"))
        large = np.zeros((32, 16))
        large[31, 1] = 1e300
        with self.assertRaisesRegex(stretto.Error, r"\[31, 1\] is 1e\+300, which float32 does not hold"):
            trainer.set_parameter("wte", large)
        large[31, 1] = np.inf  # as it is
        trainer.set_parameter("wte", large)

    def test_sizes_that_the_arrays_do_not_have(self):
        model = {"family": "gpt2", "layers": 2, "width": 16, "heads": 2, "context": 8, "vocab": 32}
        trainer = stretto.Trainer(model=model, train={"batch": 4})
        ids = np.zeros((4, 8), np.int32)
        with self.assertRaises(stretto.Error) as caught:  # nothing of that size is made
            trainer.evaluate(sizes={"batch": 10**9}, ids=ids, targets=ids)
        self.assertIn("i32[4, 8] and should be i32[1000000000, 8]", caught.exception.what)
        with self.assertRaises(stretto.Error) as caught:
            trainer.evaluate(sizes={"rows": 2}, ids=ids, targets=ids)
        self.assertIn("no input has a dim 'rows'", caught.exception.what)
        for sizes in ([1, 2], "batch", {"batch": "two"}, {"batch": None}, {"batch": [1]}):
            with self.subTest(sizes), self.assertRaisesRegex(stretto.Error, "'sizes' is "):
                trainer.evaluate(sizes=sizes, ids=ids, targets=ids)

    def test_batches_that_do_not_fit(self):
        trainer = stretto.Trainer(model=SMALL, train={"batch": 4})
        batch = batch_for(trainer)
        with self.assertRaisesRegex(stretto.Error, "float64 is given, and int32 is needed"):
            trainer.step(ids=batch["ids"] * 0.5, targets=batch["targets"])
        for wrong in ({"ids": batch["ids"]}, batch | {"more": batch["ids"]}, batch | {"ids": batch["ids"][:2]}):
            with self.assertRaises(stretto.Error):
                trainer.step(**wrong)
        self.assertGreater(trainer.step(**batch).loss, 0)  # it still works
        with self.assertRaisesRegex(stretto.Error, "did you mean 'wte'"):
            trainer.parameter("wtee")
        with self.assertRaisesRegex(stretto.Error, "is outside of dim 'vocab', which has 32 rows"):
            trainer.step(ids=batch["ids"] + 1000, targets=batch["targets"])
        self.assertGreater(trainer.step(**batch).loss, 0)
        with self.assertRaises(TypeError):
            stretto.Trainer(model="gpt2")


class Interrupts(Folder):
    def ends_after_interrupt(self, program):
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.path) as child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            try:
                said = child.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                child.kill()
                self.fail("it goes on after Ctrl-C")
        self.assertIn("KeyboardInterrupt", said)

    def test_steps_of_ones_own(self):
        self.ends_after_interrupt(f"""
            import numpy as np, stretto
            trainer = stretto.Trainer(model={SMALL!r}, train={{"batch": 4, "microbatches": 2}}, parallel={{"pipe": 2}})
            ids = np.zeros((4, 8), np.int32)
            print("ready", flush=True)
            while True:
                trainer.step(ids=ids, targets=ids)
        """)

    def test_a_whole_run(self):
        self.ends_after_interrupt(f"""
            import stretto
            print("ready", flush=True)
            stretto.train(model={SMALL | {"vocab": 256}!r}, train={{"steps": 10**6, "batch": 4}}, quiet=True,
                          data={{"path": {str(SOURCE / "examples/data/tales.txt")!r}}}, log={{"dir": "run"}})
        """)


class Page(Folder):
    def test_snippets_of_the_page_run(self):
        page = (SOURCE / "docs/python.md").read_text().split("```")
        snippets = [block.removeprefix("python\n") for block in page[1::2] if block.startswith("python\n")]
        self.assertGreater(len(snippets), 3)
        (self.path / "examples").symlink_to(SOURCE / "examples")
        (self.path / "my-model").symlink_to(SOURCE / "tests/files/hf_models/qwen3")
        before = os.getcwd()
        os.chdir(self.path)
        self.addCleanup(os.chdir, before)
        names = {}
        for snippet in snippets:
            exec(compile(snippet, "docs/python.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
