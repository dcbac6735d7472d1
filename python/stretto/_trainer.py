"""Training on batches of one's own."""

import dataclasses
import os

import numpy as np

from ._library import Error, Fault, call, run_arguments

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


def _fault(where, what, hint):
    return Error(f"[{where}] {what}; hint: {hint}", [Fault(where, what, hint)], 1)


class Trainer:
    """A compiled model with its parameters: `Trainer("run.toml", parallel={"pipe": 2})`, or sections alone.

    Nothing of [data], [log] or [checkpoint] is used: batches are given to step(), save() writes checkpoints.
    """

    def __init__(self, run=None, **sections):
        self._id = None
        with run_arguments(run, sections) as arguments:
            opened = call("trainer_open", **arguments)
        self._id = opened["trainer"]
        self.ranks = opened["ranks"]
        self.inputs = _described(opened["inputs"])
        self.parameters = _described(opened["parameters"])

    def step(self, **batch):
        """Trains on one batch: an array for every input, with the rows of the whole step."""
        given, kept = self._batch(batch)
        result = _step(self._call("trainer_step", batch=given))
        del kept
        return result

    def evaluate(self, sizes=None, **batch):
        """Forward only. `sizes` binds dims to other sizes: {"batch": 2}."""
        given, kept = self._batch(batch)
        result = _step(self._call("trainer_evaluate", batch=given, sizes=sizes))
        del kept
        return result

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
        self._call("trainer_write", name=name, array=self._given(array))

    def save(self, directory, keep=3):
        """Writes directory/step-<number>, which appears whole or not at all; the newest `keep` stay."""
        self._call("trainer_save", directory=os.fspath(directory), keep=keep)

    def load(self, directory):
        """Goes on from the newest checkpoint there, under any layout. False: there is none."""
        return self._call("trainer_load", directory=os.fspath(directory))["found"]

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

    def _call(self, name, /, **arguments):
        if self._id is None:
            raise _fault("trainer", "it has been closed", "make another one")
        return call(name, trainer=self._id, **arguments)

    @staticmethod
    def _converted(name, value, dtype):
        array = np.asarray(value)
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise _fault(name, f"an array of {array.dtype} is given, and {dtype} is needed", f"use .astype({dtype})")
        return np.ascontiguousarray(array, dtype)

    @staticmethod
    def _given(array):
        return {"dtype": _names[array.dtype], "sizes": list(array.shape), "at": array.ctypes.data}

    def _batch(self, batch):
        arrays = {}
        for name, value in batch.items():
            dtype = self.inputs[name].dtype if name in self.inputs else np.asarray(value).dtype
            arrays[name] = self._converted(name, value, dtype if dtype in _names else np.dtype(np.float32))
        return {name: self._given(a) for name, a in arrays.items()}, arrays

    def _read(self, name, what):
        described = self.parameters.get(name)
        array = np.empty(described.sizes if described else 0, described.dtype if described else np.float32)
        to = {"at": array.ctypes.data, "bytes": array.nbytes}
        self._call("trainer_read", name=name, what=what, to=to)
        return array
