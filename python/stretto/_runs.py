"""Whole runs: a file, sections of keys over it, or both."""

import contextlib
import html
import json
import os
import pathlib
import re
import threading
import time

from ._library import Result, call, error, run_arguments, settings_of


def _path(path):
    return None if path is None else os.fspath(path)


def config(run=None, **sections):
    """Every key with its value, as TOML."""
    return call("config", **run_arguments(run, sections))


def check(run=None, **sections):
    """Everything that can be checked without training: data, model, program, memory. Says what the run would be."""
    return call("check_of_run", **run_arguments(run, sections))


def simulate(run=None, cluster=None, **sections):
    """What a step will take and hold, on the machines of a cluster file or those of the run itself."""
    return Result(**call("simulate_run", cluster=_path(cluster),
                         **run_arguments(run, sections)))


class Plan(Result):
    """What was found, which a notebook shows as a table."""

    def _repr_html_(self):
        rows = "".join(f"<tr><td>{i}</td><td>{html.escape(p.text)}</td><td>{p.seconds:.4g}</td><td>{p.bytes / 1e9:.3g}</td>"
                       f"<td>{p.bubble:.1%}</td><td>{p.mfu:.1%}</td></tr>" for i, p in enumerate(self.best, 1))
        return ("<table><tr><th></th><th>configuration</th><th>seconds</th><th>GB</th><th>bubble</th><th>MFU</th></tr>"
                f"{rows}</table><p>{html.escape(self.why_not)}</p>")


def plan(run=None, cluster=None, ranks=None, top=10, quick=False, **sections):
    """The best meshes, schedules, recompute and ZeRO for a cluster: `.best[0].settings` are sections for the others."""
    found = call("plan", cluster=_path(cluster), ranks=ranks, top=top, quick=quick,
                 **run_arguments(run, sections))
    return Plan(ranks=found["ranks"], tried=found["tried"], why_not=found["why_not"],
                best=[Result(**p) for p in found["best"]])


def train(run=None, resume=None, quiet=False, on_step=None, **sections):
    """A whole run, as `stretto train` does it; `resume`: a run directory or checkpoint to go on from. Ctrl-C ends it after
    the steps under way, with a checkpoint. `on_step` is called with the numbers of every step, as a dict, by another
    thread; what it raises is raised when the run has ended."""
    if run is None and resume is not None and pathlib.Path(resume, "config.toml").exists():
        run = pathlib.Path(resume, "config.toml")
    arguments = run_arguments(run, sections)
    with _followed(arguments, resume, on_step) if on_step else contextlib.nullcontext():
        done = Result(**call("train_run", resume=_path(resume), quiet=quiet, **arguments))
    if done.stopped:
        raise KeyboardInterrupt(f"stopped after step {done.steps}; stretto.train(resume={done.directory!r}) goes on")
    return done


@contextlib.contextmanager
def _followed(arguments, resume, on_step):
    """Gives on_step the lines that a run appends to its metrics."""
    directory = resume if resume is not None else _log(arguments, "dir")
    if not directory:
        directory = f"runs/{_log(arguments, 'name')}-{time.strftime('%Y%m%d-%H%M%S')}"
        arguments["settings"].append(f"--log.dir={json.dumps(directory)}")
    path = pathlib.Path(directory, "metrics.jsonl")
    begin = path.stat().st_size if path.exists() else 0
    ended, raised = threading.Event(), []

    def follow():
        at, last = begin, False
        while not last:
            last = ended.wait(0.1)
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    at += len(line)
                    on_step(json.loads(line))

    def guarded():
        try:
            follow()
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if raised:
        raise raised[0]


def _log(arguments, key):
    section = call("config", **arguments).split("\n[log]\n")[-1]
    found = re.search(rf'^{key} = "(.*)"$', section, re.MULTILINE)
    return found[1] if found else ""


def eval(directory, data, tokenizer=None, field=None, template=None, documents=False, batch=8, batches=0, base=None,
         ema=False, hf_as=None, parallel=None):
    """How well a model predicts texts: loss, perplexity, bits_per_byte. `directory`: a run, a checkpoint, a Hugging Face
    directory or an adapter. A layout, such as parallel={"data": 2}, changes no number."""
    files = [data] if isinstance(data, (str, os.PathLike)) else data
    return Result(**call("eval", directory=os.fspath(directory), data=[os.fspath(f) for f in files],
                         tokenizer=_path(tokenizer), field=field, template=_path(template), documents=documents,
                         batch=batch, batches=batches, base=_path(base), ema=ema, hf_as=hf_as,
                         settings=settings_of({"parallel": parallel or {}})))


def convert(source, to, dtype=None, adapter=False, base=None, ema=False, hf_as=None):
    """A Hugging Face directory becomes a checkpoint; a run, a checkpoint or an adapter a Hugging Face directory. Says
    what was written."""
    return call("convert", **{"from": os.fspath(source)}, to=os.fspath(to), dtype=dtype, adapter=adapter, base=_path(base),
                ema=ema, hf_as=hf_as)


def verify(run=None, steps=3, tolerance=None, **sections):
    """Trains a few steps serially and as the run says: `.equal`, else `.first` is what differs; `.text` has all."""
    return Result(**call("verify", steps=steps, tolerance=tolerance, **run_arguments(run, sections)))


def metrics(directory):
    """What a run directory's metrics.jsonl has: a list of numbers (None where there is none) for every key."""
    path = pathlib.Path(directory, "metrics.jsonl")
    try:
        lines = path.read_text().splitlines()
    except OSError as e:
        raise error(str(path), e.strerror, "give the directory of a run") from None
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # a run that is under way, or was killed, may end in half a line
            continue
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: [row.get(key) for row in rows] for key in keys}
