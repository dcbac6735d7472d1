"""The shared library: one call from JSON to JSON."""

import ctypes
import dataclasses
import json
import math
import os
import pathlib
import tempfile
import types
from contextlib import contextmanager

_library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libstretto_python.so")))
_library.stretto_call.restype = ctypes.c_void_p
_library.stretto_call.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_library.stretto_free.argtypes = [ctypes.c_void_p]
_library.stretto_version.restype = ctypes.c_char_p

__version__ = _library.stretto_version().decode()


@dataclasses.dataclass(frozen=True)
class Fault:
    """One thing that is wrong: where, what with the real values, and what to do about it."""

    where: str
    what: str
    hint: str


class Error(Exception):
    """What is wrong with what was asked for. `where`, `what` and `hint` are of the first of `faults`."""

    def __init__(self, text, faults, code):
        super().__init__(text)
        self.faults = faults
        self.code = code  # as the command line ends with: 1 the input is wrong, 2 wrong usage, 3 failed while running
        self.where, self.what, self.hint = faults[0].where, faults[0].what, faults[0].hint


def _place(where):
    """Keys reach the library as a command line would, and were given as arguments of a call."""
    return "arguments" if where == "command line" else where


def _plain(value):
    """Numbers of numpy are numbers."""
    if hasattr(value, "item"):
        return value.item()
    raise wrong_argument(f"{value!r} is {type(value).__name__}", "give numbers and text")


def wrong_argument(what, hint):
    return Error(f"[arguments] {what}; hint: {hint}", [Fault("arguments", what, hint)], 1)


def call(name, /, **arguments):
    """Other threads of Python go on meanwhile."""
    try:
        text = json.dumps(arguments, allow_nan=False, default=_plain).encode()
    except ValueError:  # nan, inf
        wrong = next((key for key, value in arguments.items() if isinstance(value, float) and not math.isfinite(value)), "")
        raise wrong_argument(f"'{wrong}' is {arguments.get(wrong)}", "give a finite number") from None
    answer = _library.stretto_call(name.encode(), text)
    if not answer:
        raise MemoryError("stretto: no memory for an answer")
    try:
        read = json.loads(ctypes.string_at(answer))
    finally:
        _library.stretto_free(answer)
    if "error" in read:
        error = read["error"]
        faults = [Fault(**f | {"where": _place(f["where"])}) for f in error["faults"]]
        raise Error(error["text"].replace("[command line]", f"[{_place('command line')}]"), faults, error["code"])
    return read.get("result")


class Result(types.SimpleNamespace):
    """An answer whose fields are attributes."""


def is_rows(schedule):
    return isinstance(schedule, (list, tuple))


def cell_of(action):
    """'0F3' as it is; (stage, phase, microbatch) as that."""
    if isinstance(action, str):
        return action
    if not isinstance(action, (list, tuple)) or len(action) != 3:
        raise wrong_argument(f"an action is {action!r}", "write '0F3', or (0, 'F', 3): stage, phase, microbatch")
    stage, phase, microbatch = action
    return f"{stage}{phase}{microbatch}"


@contextmanager
def schedule_as_text(schedule):
    """A name or file as it is; rows of actions as a file for as long as it is read."""
    if not is_rows(schedule):
        yield os.fspath(schedule)
        return
    with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
        path = pathlib.Path(folder, "schedule.csv")
        path.write_text("".join(",".join(map(cell_of, row)) + "\n" for row in schedule))
        yield str(path)


def value_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {value_text(v)}" for key, v in value.items()) + "}"
    return repr(value.item() if hasattr(value, "item") else value)


def settings_of(sections):
    """model={"layers": 4} as --model.layers=4."""
    settings = []
    for section, keys in sections.items():
        if not isinstance(keys, dict):
            raise TypeError(f"{section} is a section: give a dict of its keys, e.g. model={{'layers': 4}}")
        settings += [f"--{section}.{key}={value_text(value)}" for key, value in keys.items()]
    return settings


@contextmanager
def run_arguments(run, sections):
    """The arguments of calls that take a run: a file or None, and sections of keys over it."""
    sections = {name: dict(keys) if isinstance(keys, dict) else keys for name, keys in sections.items()}
    with schedule_as_text(sections.get("parallel", {}).get("schedule", "")) as schedule:
        if is_rows(sections.get("parallel", {}).get("schedule")):
            sections["parallel"]["schedule"] = schedule
        yield {"run": os.fspath(run) if run is not None else "", "settings": settings_of(sections)}
