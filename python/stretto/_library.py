"""The shared library, its errors, and how arguments reach it: as JSON, and arrays as memory beside it."""

import ctypes
import dataclasses
import json
import math
import os
import pathlib
import re
import types

_library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libstretto_python.so")))


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_longlong)]


_library.stretto_call.restype = ctypes.c_void_p
_library.stretto_call.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Buffer), ctypes.c_longlong]
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

    def __reduce__(self):  # a pool of processes sends it
        return Error, (str(self), self.faults, self.code)


def error(where, what, hint):
    return Error(f"[{where}] {what}; hint: {hint}", [Fault(where, what, hint)], 1)


def wrong_argument(what, hint):
    return error("arguments", what, hint)


def _here(text):
    """What the command line calls --train.batch is a key or an argument here, and comes without a command line."""
    return re.sub(r"(?<![\w-])--(?=[a-z])", "", text).replace("[command line]", "[arguments]")


def _fault(fault):
    where = "arguments" if fault["where"] == "command line" else fault["where"]
    return Fault(where, _here(fault["what"]), _here(fault["hint"]))


def _plain(value):
    """Numbers of numpy are numbers."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        return value.item()
    raise wrong_argument(f"{value!r} is {type(value).__name__}", "give numbers and text")


def call(name, /, *arrays, **arguments):
    """Arguments name arrays by their place among `arrays`. Other threads of Python go on meanwhile."""
    try:
        text = json.dumps(arguments, allow_nan=False, default=_plain).encode()
    except ValueError:  # nan, inf
        wrong = next((key for key, value in arguments.items() if isinstance(value, float) and not math.isfinite(value)), "")
        raise wrong_argument(f"'{wrong}' is {arguments.get(wrong)}", "give a finite number") from None
    except TypeError as e:  # keys that are no text
        raise wrong_argument(str(e), "give numbers and text") from None
    buffers = (_Buffer * len(arrays))(*((a.ctypes.data, a.nbytes) for a in arrays))
    answer = _library.stretto_call(name.encode(), text, buffers, len(arrays))
    if not answer:
        raise MemoryError("stretto: no memory for an answer")
    try:
        read = json.loads(ctypes.string_at(answer))
    finally:
        _library.stretto_free(answer)
    if "error" in read:
        wrong = read["error"]
        raise Error(_here(wrong["text"]), [_fault(f) for f in wrong["faults"]], wrong["code"])
    return read.get("result")


class Result(types.SimpleNamespace):
    """An answer whose fields are attributes."""


class Picture:
    """An SVG picture, which a notebook shows."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        pathlib.Path(path).write_text(self.svg)


def cell_of(action):
    """'0F3' as it is; (stage, phase, microbatch) as that."""
    if isinstance(action, str):
        return action
    if not isinstance(action, (list, tuple)) or len(action) != 3:
        raise wrong_argument(f"an action is {action!r}", "write '0F3', or (0, 'F', 3): stage, phase, microbatch")
    stage, phase, microbatch = action
    return f"{stage}{phase}{microbatch}"


def schedule_text(schedule):
    """A name or file as it is; rows of actions as lines of cells."""
    if not isinstance(schedule, (list, tuple)):
        return os.fspath(schedule)
    return "".join(",".join(map(cell_of, row)) + "\n" for row in schedule) or "\n"


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
        return "{" + ", ".join(f"{json.dumps(str(key))} = {value_text(v)}" for key, v in value.items()) + "}"
    return repr(value.item() if hasattr(value, "item") else value)


def settings_of(sections):
    """model={"layers": 4} as --model.layers=4."""
    settings = []
    for section, keys in sections.items():
        if not isinstance(keys, dict):
            raise TypeError(f"{section} is a section: give a dict of its keys, e.g. model={{'layers': 4}}")
        for key, value in keys.items():
            rows = (section, key) == ("parallel", "schedule") and isinstance(value, (list, tuple))
            settings.append(f"--{section}.{key}={value_text(schedule_text(value) if rows else value)}")
    return settings


def run_arguments(run, sections):
    """The arguments of calls that take a run: a file or None, and sections of keys over it."""
    return {"run": os.fspath(run) if run is not None else "", "settings": settings_of(sections)}
