"""What cannot be imported is refused with its module, line, op and what to do, all of it at once."""

import unittest

import torch
import torch.nn.functional as F
from torch import nn

import stretto

import zoo


class Net(nn.Module):
    """A small module, `body` in the middle of it."""

    def __init__(self, body, width=8):
        super().__init__()
        self.body = body
        self.first, self.last = nn.Linear(4, width), nn.Linear(width, 3)

    def forward(self, x, y):
        return F.cross_entropy(self.last(self.body(self.first(x))), y)


class Body(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, h):
        return self.function(h)


BATCH = {"x": torch.randn(6, 4), "y": torch.randint(0, 3, (6,))}


def refusal(call):
    try:
        call()
    except stretto.Error as e:
        return e
    raise AssertionError("it is not refused")


def of(function, batch=None, **how):
    return refusal(lambda: stretto.from_torch(Net(Body(function)), batch or BATCH, **how))


class Graphs(unittest.TestCase):
    def said(self, error, *texts):
        for text in texts:
            self.assertIn(text, str(error))
        for fault in error.faults:
            self.assertTrue(fault.hint, fault)

    def test_sizes_that_depend_on_values(self):
        hint = "no x[mask], nonzero, .item(), or Python `if` on a tensor"
        self.said(of(lambda h: h * h[h > 0].sum()), "use torch.where(mask, x, 0)", "refusals_test.py")
        self.said(of(lambda h: h * len(torch.nonzero(h > 0))), hint, "refusals_test.py")
        self.said(of(lambda h: h * h.sum().item()), "aten.item: a number or a size that depends on values", "keep it a tensor")
        self.said(of(lambda h: h * h.sum().item() if h.sum().item() > 0 else h), hint, "refusals_test.py")

        def branch(h):
            return h * 2 if h.sum() > 0 else h

        self.said(of(branch), hint, "refusals_test.py")

    def test_an_op_that_is_not_known(self):
        self.said(of(lambda h: torch.special.bessel_j0(h)), "aten.special_bessel_j0 is not known in body",
                  "(refusals_test.py:", 'give a rule: @stretto.torch.rule("aten.special_bessel_j0")')

    def test_all_of_it_at_once(self):
        error = of(lambda h: torch.special.bessel_j0(h * 2) + torch.special.bessel_j0(h) + torch.cumprod(h, 1))
        self.assertEqual(len(error.faults), 2)
        self.said(error, "aten.cumprod", "and at 1 more places")

    def test_views_that_cut_the_batch(self):
        self.said(of(lambda h: h.t().reshape(h.shape[0], 8)), "cuts or joins the batch's rows: 8 x 6 to 6 x 8",
                  "keep the batch an axis of its own")

    def test_a_number_of_rows_that_goes_elsewhere(self):
        self.said(of(lambda h: h * h.shape[0]), "how many rows a batch has", "divide the loss by it")

    def test_no_loss(self):
        module = Net(Body(lambda h: h))
        self.said(refusal(lambda: stretto.from_torch(module, BATCH, loss=lambda m, b: m.first(b["x"]))),
                  "the loss is 6 x 8 numbers", "return one number")
        self.said(refusal(lambda: stretto.from_torch(module, BATCH, loss=lambda m, b: b["x"].mean())),
                  "no parameter has a part in the loss")
        self.said(refusal(lambda: stretto.from_torch(module, BATCH, loss=lambda m, b: "loss")), "give loss=lambda")

    def test_rows_that_meet(self):
        module, batch = zoo.make("towers")
        model = stretto.from_torch(module, batch)
        error = refusal(lambda: stretto.Trainer(model, train={"microbatches": 3}))
        self.said(error, "rows of a batch meet", "zoo.py:", "use one microbatch")
        with stretto.Trainer(model, train={"microbatches": 3}, rows="microbatch") as trainer:
            parts = [module(**{k: v[i:i + 2] for k, v in batch.items()}).item() for i in (0, 2, 4)]
            self.assertAlmostEqual(trainer.step(**batch).loss, sum(parts) / 3, places=12)

    def test_a_parameter_that_does_not_reach_the_loss(self):
        module = Net(Body(lambda h: h))
        module.spare = nn.Linear(2, 2)
        model = stretto.from_torch(module, BATCH)
        self.assertIn("left out: spare.weight, it does not reach the loss", repr(model))
        with stretto.Trainer(model, optimizer=torch.optim.AdamW(module.parameters())) as trainer:
            before = module.spare.weight.clone()
            trainer.step(**BATCH)
            trainer.to_torch()
            self.assertTrue(torch.equal(before, module.spare.weight))


class Modules(unittest.TestCase):
    def said(self, module, batch, *texts):
        error = refusal(lambda: stretto.from_torch(module, batch))
        for text in texts:
            self.assertIn(text, str(error))

    def test_modules_that_are_wrapped_or_elsewhere(self):
        net = lambda: Net(Body(lambda h: h))
        self.said(net().half(), BATCH, "is torch.float16", "use module.float()")
        self.said(net().to("meta"), BATCH, "lies on meta", "use module.cpu()")
        self.said(torch.compile(net()), BATCH, "is compiled already", "that went into torch.compile")
        self.said(nn.DataParallel(net()), BATCH, "is wrapped by DataParallel", "give module.module")
        self.said(lambda x, y: x, BATCH, "is function", "give a torch.nn.Module")

    def test_options_that_are_none(self):
        net = Net(Body(lambda h: h))
        for how, text in [({"loss": 3}, "[loss] is int"), ({"names": 5}, "[names] is 5"),
                          ({"names": {"first.weight": (3, 4)}}, "a name, or None, for each axis"),
                          ({"boundaries": "first"}, "give a list of paths of modules")]:
            self.assertIn(text, str(refusal(lambda: stretto.from_torch(net, BATCH, **how))))
        model = stretto.from_torch(net, BATCH)
        self.assertIn("[optimizer] is int", str(refusal(lambda: stretto.Trainer(model, optimizer=3))))
        self.assertIn("give stretto.from_torch", str(refusal(lambda: stretto.Trainer(net))))

    def test_what_fails_in_forward_is_said(self):
        error = of(lambda h: 1 / 0)
        self.assertIn("division by zero (refusals_test.py:", str(error))
        self.assertIn("try module(**batch)", error.hint)

    def test_batches_that_are_none(self):
        net = Net(Body(lambda h: h))
        self.said(net, [BATCH["x"], BATCH["y"]], "is no dict of tensors")
        self.said(net, BATCH | {"x": BATCH["x"].tolist()}, "is list", "give a tensor")
        self.said(net, BATCH | {"z": torch.zeros(6)}, "z")
        self.said(net, BATCH | {"x": BATCH["x"][:4]}, "different numbers of rows")
        self.said(net, {k: v[:1] for k, v in BATCH.items()}, "has one row")
        self.said(net, BATCH | {"x": torch.tensor(1.0)}, "has no axis of rows")


class Names(unittest.TestCase):
    def said(self, text, **how):
        module, batch = zoo.make("nanogpt")
        self.assertIn(text, str(refusal(lambda: stretto.from_torch(module, batch, **how))))

    def test_names_that_do_not_fit(self):
        self.said("'*.q_proj' fits no parameter", names={"*.q_proj": ("a", "b")})
        self.said("has 2 axes, 96 x 24, and 1 names are given", names={"*.fc.weight": ("inner",)})
        self.said("'a*b' has 2 names", names={"*.fc.weight": ("a*b", "model")})
        self.said("'inner' is 24 here and 96 there", names={"*.fc.weight": ("inner", None), "*.proj.weight": ("inner", None)})

    def test_names_that_fit(self):
        module, batch = zoo.make("nanogpt")
        model = stretto.from_torch(module, batch, names={"*.fc.weight": ("inner", None)})
        self.assertEqual(model.parameters["h.0.fc.weight"].dims, ("inner", "model"))
        self.assertEqual(model.parameters["h.1.out.weight"].dims, ("model", "inner"))

    def test_boundaries_that_match_nothing(self):
        self.said("boundaries: 'layers.*' fits no module", boundaries=["layers.*"])

    def test_boundaries_that_match(self):
        module, batch = zoo.make("nanogpt")
        self.assertEqual(stretto.from_torch(module, batch, boundaries=["h.1", "h.3", "head"], check=True).pieces, 3)


class Masks(unittest.TestCase):
    def test_padding_is_an_attribute_of_attention(self):
        try:
            module, batch = zoo.make("llama_padded")
        except ImportError:
            raise unittest.SkipTest("transformers is not installed") from None
        model = stretto.from_torch(module, batch, check=False)
        attention = [n for n in model.graph["nodes"] if n["op"] == "attention"]
        self.assertEqual([n["until"] for n in attention], [True] * 4)
        ends = [n["name"] for n in model.graph["nodes"] if n["op"] == "ids" and n["name"].endswith(".until")]
        self.assertEqual(len(ends), 1)  # one mask for all layers
        batch["attention_mask"][2, 4] = 0
        with stretto.Trainer(model) as trainer:
            self.assertIn("do not lie side by side", str(refusal(lambda: trainer.step(**batch))))


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        module, cls.batch = zoo.make("mlp", torch.float32)
        cls.trainer = stretto.Trainer(stretto.from_torch(module, cls.batch))

    def said(self, text, **batch):
        self.assertIn(text, str(refusal(lambda: self.trainer.step(**batch))))

    def test_what_is_not_as_the_example(self):
        x, y = self.batch["x"], self.batch["y"]
        self.said("is [6, 7], and the example was [6, 8]", x=x[:, :7], y=y)
        self.said("is torch.int64, and the example was torch.float32", x=x.long(), y=y)
        self.said("is str, which is no tensor", x="a", y=y)
        self.said("has NaN or infinity in it", x=x * float("nan"), y=y)
        self.said("is not in the batch", x=x)
        self.said("is no input of this model", x=x, y=y, z=y)
        self.said("has different numbers of rows", x=x, y=y[:3])
        self.said("label 99 is outside of dim 'classes', which has 5 classes", x=x, y=y * 0 + 99)
        self.said("should be f32[6", x=torch.cat([x, x]), y=torch.cat([y, y]))

    def test_arrays_are_taken_too(self):
        arrays = {k: v.numpy() for k, v in self.batch.items()}
        self.assertEqual(self.trainer.evaluate(**arrays).loss, self.trainer.evaluate(**self.batch).loss)


if __name__ == "__main__":
    unittest.main()
