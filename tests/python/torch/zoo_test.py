"""Every module of zoo.py against PyTorch in f64: loss and gradients, ten steps of AdamW and of SGD, the same bits in
every schedule, every layout within rounding."""

import functools
import unittest

import numpy as np

import stretto
import zoo
from against import adamw, batches, cosine, sgd, torch_steps, worst

SCHEDULES = ["1f1b", "zb-h1", "gpipe", "zb-v"]
LAYOUTS = [{}, {"data": 2}, {"tensor": 2}, {"tensor": 2, "sequence": True}, {"data": 2, "zero": 3}, {"context": 2},
           {"pipe": 2, "data": 2, "tensor": 2}, {"tensor": 2, "zero": 2, "data": 2, "pipe": 2, "schedule": "zb-v"},
           {"context": 2, "tensor": 2, "sequence": True}, {"depth": 2}, {"expert": 2}]
# What a layout may be refused for: the model has nothing that it splits, or sizes that it does not divide.
MAY_BE_REFUSED = ("would repeat the same work", "ranks (", "pieces between its boundaries", "cut in",
                  "nothing is split", "has no dim")


@functools.cache
def imported(name):
    module, batch = zoo.make(name)
    return stretto.from_torch(module, batch, check=True)


@functools.cache
def expected(name, make_optimizer):
    return torch_steps(name, make_optimizer)


def trained(name, make_optimizer, parallel=None, microbatches=1):
    """(losses, {key: parameter}, hash)."""
    model = imported(name)
    model.module.load_state_dict(zoo.make(name)[0].state_dict())
    optimizer = make_optimizer(model.module)
    scheduler, losses = cosine(optimizer), []
    train = {"microbatches": 1 if model.one_microbatch else microbatches}
    with stretto.Trainer(model, optimizer=optimizer, train=train, parallel=parallel or {}) as trainer:
        for batch in batches(name):
            losses.append(trainer.step(**batch).loss)
            scheduler.step()
        return losses, {key: v.numpy() for key, v in trainer.state_dict().items()}, trainer.parameters_hash()


class Zoo(unittest.TestCase):
    def holds(self, name, ours, theirs, tolerance):
        losses, parameters, _ = ours
        expected_losses, expected_parameters, *_ = theirs
        np.testing.assert_allclose(losses, expected_losses, rtol=1e-12)
        found, key = worst(parameters, expected_parameters, self.apart(name))
        self.assertLess(found, tolerance, key)

    def apart(self, name):
        """Biases whose gradient is nothing but rounding: Adam divides noise by noise."""
        return [key for key in expected(name, adamw)[1]
                if key.endswith("bias") and any(part in key for part in ("k_proj", "key", "first", "second"))]

    def layouts(self, name, theirs):
        ran = 0
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                try:
                    ours = trained(name, adamw, layout, 1 if {"data", "expert", "depth"} & set(layout) else 2)
                except stretto.Error as e:
                    self.assertTrue(any(why in str(e) for why in MAY_BE_REFUSED), str(e))
                    continue
                self.holds(name, ours, theirs, 1e-9)
                ran += 1
        self.assertGreater(ran, 1)

    def schedules(self, name):
        pieces = imported(name).pieces
        bits = {trained(name, adamw, {"pipe": 2, "schedule": s} if s else {}, 2)[2]
                for s in ["", *SCHEDULES] if not s or pieces > (3 if s == "zb-v" else 1)}
        self.assertEqual(len(bits), 1)


def _test_of(name):
    def test(self):
        self.assertLess(imported(name).checked[0], 1e-9)  # loss and gradients of one step
        theirs = expected(name, adamw)
        if name == "dropout":  # it has numbers of its own, the same under every layout
            theirs = trained(name, adamw)
        else:
            self.holds(name, trained(name, sgd), expected(name, sgd), 1e-11)
        self.schedules(name)
        self.layouts(name, theirs)

    needed = zoo.NEEDS.get(name, "transformers")
    if needed:
        try:
            __import__(needed)
        except ImportError:
            return unittest.skip(f"{needed} is not installed")(test)
    return test


for _name in {**zoo.ZOO, **zoo.MORE}:
    setattr(Zoo, f"test_{_name}", _test_of(_name))

if __name__ == "__main__":
    unittest.main()
