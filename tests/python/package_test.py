"""The installed package: training on numpy batches, schedules, plans, errors, metrics, Ctrl-C."""

import os
import pathlib
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
        before = os.getcwd()
        os.chdir(self.path)
        self.addCleanup(os.chdir, before)
        names = {}
        for snippet in snippets:
            exec(compile(snippet, "docs/python.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
