"""stretto.Trainer of a PyTorch module: batches of tensors, its optimizer's groups, values in its own names and shapes."""

import pathlib
import tempfile

import numpy as np
import torch

from .._library import run_arguments
from .._trainer import Trainer, _step
from .model import as_numpy, error_of, write_safetensors
from .optimizer import Optimizer


class ModuleTrainer(Trainer):
    """Trainer(model, optimizer=torch.optim.AdamW(module.parameters()), train={...}, parallel={...}).

    What Trainer has under the graph's names is here under the module's: parameter(key), gradient(key), state(key, ...).
    """

    def __init__(self, model, optimizer=None, rows=None, **sections):
        self.model = model
        self._id = None
        self._others = {}  # models that only evaluate, with trainers of their own
        self._optimizer = None
        if isinstance(optimizer, torch.optim.Optimizer):
            self._optimizer = Optimizer(optimizer, {id(p): n for n, p in model.module.named_parameters()})
            sections["optimizer"] = self._optimizer.section()
        elif isinstance(optimizer, dict):
            sections["optimizer"] = optimizer
        elif optimizer is not None:
            hint = 'give torch.optim.AdamW(module.parameters()), or a section: {"name": "lion", "lr": 1e-4}'
            raise error_of([("optimizer", f"is {type(optimizer).__name__}", hint)])
        dtype = "f64" if model.float64 else "f32"
        sections["train"] = {"dtype": dtype, "batch": model.rows, "clip": 0.0, **sections.get("train", {})}
        self.rows = sections["train"]["batch"]
        self._parts = sections["train"].get("microbatches", 1) if rows == "microbatch" else 1
        graph = model.prepared(self._optimizer, one_microbatch=rows != "microbatch")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph.json")
            model.write(path, graph, {})
            super().__init__(model={"graph": path}, **sections)
        self._about = self._about.replace(f"graph {path}", type(model.module).__name__)
        self.load_state_dict(model.module.state_dict())
        if self._optimizer and optimizer.state:
            self.load_optimizer_state_dict(optimizer.state_dict())

    # Steps.
    def step(self, **batch):
        """Trains on one batch, as the module takes it; the rates are those of the optimizer's groups."""
        given, arrays = self._batch(batch)
        self._changed()
        return _step(self._call("trainer_step", *arrays, batch=given, rates=self._rates()))

    def record(self, **batch):
        given, arrays = self._batch(batch)
        self._changed()
        recorded = self._call("trainer_step", *arrays, batch=given, record=True, rates=self._rates())
        from .._library import Picture

        return _step(recorded["step"]), Picture(recorded["svg"])

    def evaluate(self, model=None, **batch):
        """Forward only, without dropout. `model`: another of the same parameters, e.g. of module.eval()."""
        if model is not None and model is not self.model:
            return self._other(model).evaluate(**batch)
        arrays = self.model.host(batch)
        rows = len(next(iter(batch.values())))
        given, arrays = Trainer._batch(self, arrays)
        sizes = None if rows == self.rows else {"batch": rows}
        return _step(self._call("trainer_evaluate", *arrays, batch=given, sizes=sizes))

    def _other(self, model):
        """A trainer of its own, whose parameters follow when they have changed."""
        other, fresh = self._others.get(id(model), (None, False))
        if other is None:
            other = ModuleTrainer(model, train={"batch": model.rows})
        if not fresh:
            other.load_state_dict(self.state_dict())
        self._others[id(model)] = (other, True)
        return other

    def _changed(self):
        self._others = {key: (other, False) for key, (other, _) in self._others.items()}

    def _rates(self):
        return self._optimizer.rates() if self._optimizer else None

    def _batch(self, batch):
        return super()._batch(self._host(batch))

    def _host(self, batch):
        """What PyTorch makes of a batch. Where rows meet within microbatches, of each on its own."""
        if self._parts == 1:
            return self.model.host(batch)
        cut = {key: np.array_split(np.asarray(value), self._parts) for key, value in batch.items()}
        made = [self.model.host({key: parts[i] for key, parts in cut.items()}) for i in range(self._parts)]
        return {name: np.concatenate([m[name] for m in made]) for name in made[0]}

    def logits(self, *_, **__):
        raise error_of([("trainer", "a model that is a graph is none of a family's, which know what logits are",
                         "trainer.to_torch(module) gives its values back, and the module does the rest")])

    # Values, in the module's names and shapes.
    def state_dict(self):
        """Parameters, and buffers that training changes, as tensors under the module's keys; tied ones share memory."""
        own = self.model.module.state_dict()
        arrays = {name: Trainer.parameter(self, name) for name in self.model.parameters}
        return {key: torch.from_numpy(a).to(own[key].dtype) for key, a in self.model.out_of(arrays, own).items()}

    def load_state_dict(self, values):
        """Takes what the graph has of a module's state."""
        for name, array in self.model.into(values).items():
            self.set_parameter(name, array)
        self._changed()

    def to_torch(self, module=None):
        """Writes parameters and buffers into the module, in place, and returns it."""
        module = self.model.module if module is None else module
        own, faults = module.state_dict(keep_vars=True), []
        values = self.state_dict()
        for key, value in values.items():
            if key not in own or own[key].shape != value.shape:
                there = list(own[key].shape) if key in own else "not there"
                faults.append((key, f"is {there} in that module, and was {list(value.shape)}", "give a module of the same shape"))
        if faults:
            raise error_of(faults)
        with torch.no_grad():
            for key, value in values.items():
                own[key].copy_(value)
        return module

    def export(self, directory, dtype=None):
        """Writes directory/model.safetensors: the module's state_dict as it is now, tied tensors under each of their
        names. What training does not change is the module's."""
        if dtype is not None:
            raise error_of([("export", f"dtype={dtype!r} is of families' models", "a module's tensors keep their types")])
        folder = pathlib.Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {key: as_numpy(value) for key, value in (self.model.module.state_dict() | self.state_dict()).items()}
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            path = pathlib.Path(beside, "model.safetensors")
            write_safetensors(path, arrays)
            path.replace(folder / path.name)

    def parameter(self, key):
        return self._read_whole(key, Trainer.parameter)

    def gradient(self, key):
        """Of the last step, before clipping."""
        return self._read_whole(key, Trainer.gradient)

    def state(self, key, which):
        """"exp_avg", "exp_avg_sq" or "momentum_buffer", as PyTorch calls them, or Stretto's "m", "v", "momentum"."""
        ours = {theirs: ours for ours, theirs in (self._optimizer.states if self._optimizer else {}).items()}
        return self._read_whole(key, lambda t, name: Trainer.state(t, name, ours.get(which, which)))

    def _read_whole(self, key, read):
        names = [name for name, p in self.model.parameters.items() if key in p.keys]
        if not names:  # one of the graph's own names, or an Error that suggests the nearest
            return read(self, key)
        return self.model.out_of({name: read(self, name) for name in names})[key]

    # The optimizer's state.
    def optimizer_state_dict(self):
        """What the optimizer's load_state_dict takes; `optimizer.load_state_dict(trainer.optimizer_state_dict())`."""
        o = self._given_optimizer()
        values = {key: {} for key in o.placed if self._trained(key)}
        for key, states in values.items():
            for ours in o.states:
                states[ours] = self._read_whole(key, lambda t, name: Trainer.state(t, name, ours))
        own = self.model.module.state_dict()
        made = lambda key, array: torch.from_numpy(np.array(array)).to(own[key].dtype)
        return o.state_dict(self.steps, values if self.steps else {}, made)

    def load_optimizer_state_dict(self, state_dict):
        steps, states = self._given_optimizer().values_of(state_dict)
        for which in self._given_optimizer().states:
            for name, array in self.model.into({key: s[which] for key, s in states.items() if self._trained(key)}).items():
                array = self._converted(name, array, self.parameters[name].dtype)
                self._call("trainer_write", array, name=name, array=self._given(array, 0), what=which)
        if steps is not None:
            self._call("trainer_set_step", step=steps)

    @property
    def steps(self):
        """How many have been done."""
        return self._call("trainer_steps")

    def _trained(self, key):
        return any(key in p.keys and p.trained and not p.buffer for p in self.model.parameters.values())

    def _given_optimizer(self):
        if self._optimizer is None:
            raise error_of([("optimizer", "is a section of keys, and none of PyTorch's", "give Trainer a torch.optim.AdamW")])
        return self._optimizer

    def load(self, directory):
        self._changed()
        return super().load(directory)

    def close(self):
        for other, _ in getattr(self, "_others", {}).values():
            other.close()
        self._others = {}
        super().close()
