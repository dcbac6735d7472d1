"""stretto.Trainer of modules: values, optimizer and evaluation both ways, checkpoints, files."""

import json
import pathlib
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

import stretto
import zoo
from against import adamw, batches


def cluster_in(folder):
    path = pathlib.Path(folder, "cluster.toml")
    path.write_text("ranks_per_node = 2\n[machine]\nflops = 50e9\n[inside]\nlatency = 2e-6\nbandwidth = 10e9\n")
    return path


def steps(trainer, name, first, last):
    return [trainer.step(**batch).loss for batch in batches(name, last)[first:]]


class Values(unittest.TestCase):
    def setUp(self):
        self.module, self.batch = zoo.make("nanogpt")
        self.model = stretto.from_torch(self.module, self.batch)

    def trainer(self, **more):
        return stretto.Trainer(self.model, optimizer=adamw(self.module), **more)

    def test_parameters_go_back_into_the_module(self):
        before = {k: v.clone() for k, v in self.module.state_dict().items()}
        with self.trainer() as trainer:
            trainer.step(**self.batch)
            loss = trainer.evaluate(**self.batch).loss
            trainer.to_torch()
        self.assertTrue(all((before[k] != v).any() for k, v in self.module.state_dict().items() if "attn.weight" in k))
        self.assertIs(self.module.head.weight, self.module.wte.weight)
        self.assertAlmostEqual(self.module.eval()(**self.batch).item(), loss, places=12)

    def test_what_is_exported_is_the_modules_state(self):
        self.module.register_buffer("flags", torch.tensor([True, False]))
        with tempfile.TemporaryDirectory() as folder, self.trainer() as trainer:
            trainer.step(**self.batch)
            trainer.export(pathlib.Path(folder, "exported"))
            trainer.to_torch()
            [file] = pathlib.Path(folder, "exported").iterdir()
            data = file.read_bytes()
            header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
            at = 8 + int.from_bytes(data[:8], "little")
            own = self.module.state_dict()
            self.assertEqual(set(header), set(own))
            for key, entry in header.items():
                begin, end = entry["data_offsets"]
                self.assertEqual(data[at + begin:at + end], own[key].numpy().tobytes(), key)
                self.assertEqual(entry["shape"], list(own[key].shape))

    def test_names_and_shapes_are_the_modules(self):
        with self.trainer() as trainer:
            trainer.step(**self.batch)
            self.assertEqual(trainer.parameter("h.0.attn.weight").shape, (72, 24))
            self.assertEqual(trainer.gradient("head.weight").shape, (44, 24))
            self.assertEqual(trainer.state("h.0.attn.weight", "exp_avg").shape, (72, 24))
            with self.assertRaisesRegex(stretto.Error, "h.0"):
                trainer.parameter("h.0.attn.wieght")

    def test_the_optimizers_state_goes_both_ways(self):
        with self.trainer() as one:
            steps(one, "nanogpt", 0, 4)
            rest = steps(one, "nanogpt", 4, 6)
        with self.trainer() as one:
            steps(one, "nanogpt", 0, 4)
            state, values = one.optimizer_state_dict(), one.state_dict()
        optimizer = adamw(self.module)
        optimizer.load_state_dict(state)  # PyTorch takes it
        self.assertEqual(int(optimizer.state[self.module.ln_f.weight]["step"]), 4)
        self.module.load_state_dict(values)
        with stretto.Trainer(self.model, optimizer=optimizer) as other:  # and it is gone on from
            self.assertEqual(other.steps, 4)
            self.assertEqual(steps(other, "nanogpt", 4, 6), rest)

    def test_a_checkpoint_goes_on_under_another_layout(self):
        with tempfile.TemporaryDirectory() as folder, self.trainer(train={"microbatches": 2}) as one:
            steps(one, "nanogpt", 0, 3)
            one.save(folder)
            rest = steps(one, "nanogpt", 3, 5)
            with self.trainer(train={"microbatches": 2}, parallel={"pipe": 2, "tensor": 2, "schedule": "zb-h1"}) as other:
                self.assertTrue(other.load(folder))
                np.testing.assert_allclose(steps(other, "nanogpt", 3, 5), rest, rtol=1e-12)

    def test_other_numbers_of_rows_are_evaluated(self):
        with self.trainer() as trainer:
            few = {k: v[:3] for k, v in self.batch.items()}
            self.assertAlmostEqual(trainer.evaluate(**few).loss, self.module(**few).item(), places=12)

    def test_rows_of_a_step_may_be_others(self):
        batch = {k: torch.cat([v, v]) for k, v in self.batch.items()}
        with self.trainer(train={"batch": 12, "microbatches": 4}) as trainer:
            self.assertAlmostEqual(trainer.step(**batch).loss, self.module(**batch).item(), places=12)

    def test_the_file_trains_as_the_module_does(self):
        with tempfile.TemporaryDirectory() as folder, self.trainer() as ours:
            path = pathlib.Path(folder, "nanogpt.json")
            self.model.save(path)
            json.loads(path.read_text())
            self.assertIn("graph", stretto.check(model={"graph": path}, train={"batch": 6}))
            self.assertTrue(stretto.verify(model={"graph": path}, train={"batch": 6, "microbatches": 2}, steps=1,
                                           parallel={"pipe": 2}).equal)
            planned = stretto.plan(model={"graph": path}, train={"batch": 6}, cluster=cluster_in(folder), ranks=2)
            self.assertGreater(planned.best[0].seconds, 0)
            with stretto.Trainer(model={"graph": path}, train={"batch": 6, "dtype": "f64"}) as plain:
                given = {k: v.numpy().astype(np.int32) for k, v in self.batch.items()}
                self.assertEqual(plain.step(**given).loss, ours.step(**self.batch).loss)


    def test_what_families_have_is_refused(self):
        with self.trainer() as trainer, tempfile.TemporaryDirectory() as folder:
            for call in (lambda: trainer.logits(np.zeros((1, 4), np.int32)), lambda: trainer.generate([1, 2], tokens=2),
                         lambda: trainer.export_adapter(pathlib.Path(folder, "exported"))):
                with self.assertRaisesRegex(stretto.Error, "none of a family's"):
                    call()


class Evaluation(unittest.TestCase):
    def test_another_model_of_the_same_parameters(self):
        module, batch = zoo.make("resnet")
        model = stretto.from_torch(module, batch)
        evaluated = stretto.from_torch(module.eval(), batch)
        module.train()
        with stretto.Trainer(model, optimizer=torch.optim.SGD(module.parameters(), lr=0.1)) as trainer:
            for given in batches("resnet", 3):
                trainer.step(**given)
            loss = trainer.evaluate(evaluated, **batch).loss
            reference, _ = zoo.make("resnet")
            optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
            for given in batches("resnet", 3):
                optimizer.zero_grad()
                reference(**given).backward()
                optimizer.step()
            self.assertAlmostEqual(loss, reference.eval()(**batch).item(), places=9)  # running statistics, too
            own = trainer.to_torch()
        for key, value in reference.state_dict().items():
            if "running" in key:
                torch.testing.assert_close(own.state_dict()[key], value, rtol=1e-9, atol=1e-12)


class Imports(unittest.TestCase):
    def test_one_tensor_under_two_names_is_two_inputs(self):
        module, batch = zoo.make("nanogpt")
        model = stretto.from_torch(module, {"idx": batch["idx"], "targets": batch["idx"]})
        with stretto.Trainer(model) as trainer:
            self.assertAlmostEqual(trainer.step(**batch).loss, module(**batch).item(), places=12)

    def test_the_module_stays_as_it_is(self):
        module, batch = zoo.make("resnet")
        before = {k: v.clone() for k, v in module.state_dict().items()}
        stretto.from_torch(module, batch, check=True)
        self.assertTrue(all(torch.equal(before[k], v) for k, v in module.state_dict().items()))


class Groups(unittest.TestCase):
    def test_every_group_has_a_rate_of_its_own(self):
        def run(step, module, scheduler):
            for batch in batches("mlp", 4):
                step(batch)
                scheduler.step()

        def made(module):
            groups = [{"params": module.layers.parameters()}, {"params": [*module.up.parameters(), *module.head.parameters()]}]
            optimizer = torch.optim.AdamW(groups, lr=1e-2, weight_decay=0.0)
            return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda k: k / 4, lambda k: 1 / (1 + k)])

        reference, _ = zoo.make("mlp")
        optimizer, scheduler = made(reference)

        def of_torch(batch):
            optimizer.zero_grad()
            reference(**batch).backward()
            optimizer.step()

        run(of_torch, reference, scheduler)
        module, batch = zoo.make("mlp")
        ours, our_scheduler = made(module)
        with stretto.Trainer(stretto.from_torch(module, batch), optimizer=ours) as trainer:
            run(lambda given: trainer.step(**given), module, our_scheduler)
            for key, value in trainer.state_dict().items():
                torch.testing.assert_close(value, reference.state_dict()[key], rtol=1e-12, atol=1e-13)

    def test_what_is_frozen_or_in_no_group_stays(self):
        module, batch = zoo.make("mlp")
        module.up.requires_grad_(False)
        model = stretto.from_torch(module, batch)
        optimizer = torch.optim.AdamW(module.layers.parameters())
        with stretto.Trainer(model, optimizer=optimizer) as trainer:
            trainer.step(**batch)
            after = trainer.state_dict()
        changed = {k for k, v in module.state_dict().items() if (v != after[k]).any()}
        self.assertTrue(changed and all(k.startswith("layers.") for k in changed), changed)


class Optimizers(unittest.TestCase):
    def setUp(self):
        self.module, batch = zoo.make("mlp")
        self.model = stretto.from_torch(self.module, batch, check=False)

    def refusal(self, optimizer):
        with self.assertRaises(stretto.Error) as raised:
            stretto.Trainer(self.model, optimizer=optimizer)
        return str(raised.exception)

    def test_what_is_not_known_is_named(self):
        parameters = [*self.module.parameters()]
        self.assertIn("amsgrad is True", self.refusal(torch.optim.AdamW(parameters, amsgrad=True)))
        self.assertIn("maximize is True", self.refusal(torch.optim.SGD(parameters, lr=0.1, maximize=True)))
        self.assertIn("dampening is 0.5", self.refusal(torch.optim.SGD(parameters, lr=0.1, momentum=0.9, dampening=0.5)))
        self.assertIn("is Adagrad", self.refusal(torch.optim.Adagrad(parameters)))
        self.assertIn("use AdamW", self.refusal(torch.optim.Adam(parameters, weight_decay=0.1)))
        groups = [{"params": parameters[:1], "betas": (0.5, 0.9)}, {"params": parameters[1:]}]
        self.assertIn("betas is (0.9, 0.999), and (0.5, 0.9)", self.refusal(torch.optim.AdamW(groups)))
        self.assertIn("none of the module's", self.refusal(torch.optim.AdamW(nn.Linear(2, 2).parameters())))

    def test_decay_may_not_change_on_the_way(self):
        optimizer = torch.optim.AdamW(self.module.parameters())
        with stretto.Trainer(self.model, optimizer=optimizer) as trainer:
            optimizer.param_groups[0]["weight_decay"] = 0.5
            with self.assertRaisesRegex(stretto.Error, "weight_decay was 0.01 and is 0.5"):
                trainer.step(**self.model.example)


if __name__ == "__main__":
    unittest.main()
