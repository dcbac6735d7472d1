"""Training on batches of one's own."""

import atexit
import dataclasses
import os
import weakref

import numpy as np

from ._library import Picture, call, error, run_arguments

_types = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "i32": np.dtype(np.int32)}
_names = {dtype: name for name, dtype in _types.items()}


@dataclasses.dataclass(frozen=True)
class Described:
    """An input or a parameter: its dimensions, and what numpy calls its type."""

    name: str
    dims: tuple
    sizes: tuple
    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step gives. `metrics` has loss terms and the model's own numbers, `lists` those with a dimension."""

    step: int
    loss: float
    grad_norm: float
    lr: float
    updated: bool
    seconds: float
    bubble: float
    metrics: dict
    lists: dict


def _described(all):
    return {d["name"]: Described(d["name"], tuple(d["dims"]), tuple(d["sizes"]), _types[d["dtype"]]) for d in all}


def _step(result):
    """JSON has no infinities and no NaN: what is not finite has come as nothing."""
    return Step(**{key: float("nan") if value is None else value for key, value in result.items()})


def _path(path):
    return None if path is None else os.fspath(path)


def _ids(ids):
    return np.asarray(ids, np.int64).reshape(-1).tolist()


_open = weakref.WeakSet()


@atexit.register
def _close_all():  # while there still is an interpreter
    for trainer in list(_open):
        trainer.close()


def _first_lost(array, converted):
    """The place of the first number that the other type does not hold; none: all are there."""
    if np.can_cast(array.dtype, converted.dtype):
        return None
    if converted.dtype.kind == "i":
        kept = np.iinfo(converted.dtype)
        lost = (array < kept.min) | (array > kept.max)
    else:
        lost = np.isinf(converted) & np.isfinite(array)
    return tuple(map(int, np.argwhere(lost)[0])) if lost.any() else None


class Trainer:
    """A compiled model with its parameters: `Trainer("run.toml", parallel={"pipe": 2})`, or sections alone.

    Nothing of [data], [log] or [checkpoint] is used: batches are given to step(), save() writes checkpoints.
    """

    def __new__(cls, run=None, **sections):
        model = sections.get("model") if run is None else run
        if hasattr(model, "forward") and hasattr(model, "state_dict"):
            raise error("model", f"is {type(model).__name__}, a PyTorch module", "give stretto.from_torch(module, batch)")
        return object.__new__(getattr(model, "trainer_type", cls) if cls is Trainer else cls)

    def __init__(self, run=None, **sections):
        self._id = None
        opened = call("trainer_open", **run_arguments(run, sections))
        self._id = opened["trainer"]
        _open.add(self)
        self.ranks = opened["ranks"]
        self._about = opened["about"]
        self.inputs = _described(opened["inputs"])
        self.parameters = _described(opened["parameters"])

    def step(self, **batch):
        """Trains on one batch: an array for every input, with the rows of the whole step."""
        given, arrays = self._batch(batch)
        return _step(self._call("trainer_step", *arrays, batch=given))

    def record(self, **batch):
        """Trains on one batch, and measures who did what when: (step, picture)."""
        given, arrays = self._batch(batch)
        recorded = self._call("trainer_step", *arrays, batch=given, record=True)
        return _step(recorded["step"]), Picture(recorded["svg"])

    def evaluate(self, sizes=None, **batch):
        """Forward only. `sizes` binds dims to other sizes: {"batch": 2}."""
        given, arrays = self._batch(batch)
        return _step(self._call("trainer_evaluate", *arrays, batch=given, sizes=sizes))

    def parameter(self, name):
        return self._read(name, "parameter")

    def gradient(self, name):
        """Of the last step, before clipping."""
        return self._read(name, "gradient")

    def state(self, name, which):
        """An optimizer's state of a parameter, e.g. "m" of adamw."""
        return self._read(name, which)

    def set_parameter(self, name, value):
        dtype = self.parameters[name].dtype if name in self.parameters else np.dtype(np.float32)  # C++ names the nearest
        array = self._converted(name, value, dtype)
        self._call("trainer_write", array, name=name, array=self._given(array, 0))

    def save(self, directory, keep=3):
        """Writes directory/step-<number>, which appears whole or not at all; the newest `keep` stay."""
        self._call("trainer_save", directory=os.fspath(directory), keep=keep)

    def load(self, directory):
        """Goes on from the newest checkpoint there, under any layout. False: there is none."""
        return self._call("trainer_load", directory=os.fspath(directory))["found"]

    def export(self, directory, dtype=None):
        """Writes a Hugging Face directory of the model as it is now; adapters are merged into it."""
        self._call("trainer_export", directory=os.fspath(directory), dtype=dtype)

    def export_adapter(self, directory, dtype=None):
        """Writes the adapters of finetune.lora, as PEFT reads them."""
        self._call("trainer_export", directory=os.fspath(directory), dtype=dtype, adapter=True)

    def logits(self, ids, targets=None, **others):
        """What may follow every token: [rows, length] -> [rows, length, vocab], for rows of any length. Of a batch, so
        that logits(**batch) works, the targets are not looked at."""
        for name in others:
            raise error(name, "logits are made of ids alone, of one text per row", "leave it out")
        ids = self._converted("ids", ids, np.dtype(np.int32))
        name, width = self._embedding()
        logits = np.empty((*ids.shape, width), self.parameters[name].dtype)
        self._call("trainer_logits", ids, logits, ids=self._given(ids, 0), buffer=1)
        return logits

    def generate(self, prompt, tokens=100, temperature=0.8, top_k=0, top_p=1, seed=0, stop=None, tokenizer=None):
        """What the model goes on with: text after text, ids after ids. `stop`: ids that end it, those of the model when
        they are not given."""
        said = {"prompt": prompt} if isinstance(prompt, str) else {"ids": _ids(prompt)}
        return self._call("trainer_generate", tokens=tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
                          stop=stop, tokenizer=_path(tokenizer), **said)

    def encode(self, text, tokenizer=None):
        """The ids of a text, by the tokenizer beside the weights of model.from; without one and with 256 ids, bytes."""
        return self._call("trainer_encode", text=text, tokenizer=_path(tokenizer))

    def decode(self, ids, tokenizer=None):
        return self._call("trainer_decode", ids=_ids(ids), tokenizer=_path(tokenizer))

    def parameters_hash(self):
        """Equal exactly when all parameters are, bit by bit, whatever the layout."""
        return self._call("trainer_hash")

    def close(self):
        """Ends its threads and gives its memory back. Also at the end of a with block."""
        if self._id is not None:
            call("trainer_close", trainer=self._id)
        self._id = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter may be half gone
            pass

    def __repr__(self):
        return f"<stretto.Trainer: {self._about}{'; closed' if self._id is None else ''}>"

    def __reduce_ex__(self, protocol):  # copy, deepcopy and pickle: each would be this very trainer
        raise error("trainer", "it holds threads and memory, which cannot be copied or sent to another process",
                    "save() and load() carry its parameters, states and step to another trainer")

    def _call(self, name, /, *arrays, **arguments):
        if self._id is None:
            raise error("trainer", "it has been closed", "make another one")
        return call(name, *arrays, trainer=self._id, **arguments)

    @staticmethod
    def _converted(name, value, dtype):
        array = np.asarray(value)
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise error(name, f"an array of {array.dtype} is given, and {dtype} is needed", f"use .astype({dtype})")
        with np.errstate(over="ignore", invalid="ignore"):
            converted = np.asarray(array, dtype, order="C")
        at = _first_lost(array, converted)
        if at is not None:
            raise error(name, f"{list(at)} is {array[at]}, which {dtype} does not hold",
                        "give ids of the vocabulary" if dtype.kind == "i" else "scale the numbers")
        return converted

    @staticmethod
    def _given(array, buffer):
        return {"dtype": _names[array.dtype], "sizes": list(array.shape), "buffer": buffer}

    def _embedding(self):
        """A parameter of the type that numbers are computed in, and the size of the vocabulary."""
        parts = {n: p for n, p in self.parameters.items() if n == "wte" or n.startswith("wte.")}
        return next(iter(parts)), sum(p.sizes[0] for p in parts.values())

    def _batch(self, batch):
        arrays = {}
        for name, value in batch.items():
            dtype = self.inputs[name].dtype if name in self.inputs else np.asarray(value).dtype
            arrays[name] = self._converted(name, value, dtype if dtype in _names else np.dtype(np.float32))
        return {name: self._given(a, i) for i, (name, a) in enumerate(arrays.items())}, list(arrays.values())

    def _read(self, name, what):
        described = self.parameters.get(name)
        array = np.empty(described.sizes if described else 0, described.dtype if described else np.float32)
        self._call("trainer_read", array, name=name, what=what, buffer=0)
        return array
