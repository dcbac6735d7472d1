"""Whole runs: a file, sections of keys over it, or both."""

import json
import os
import pathlib

from ._library import Error, Fault, Result, call, run_arguments


def config(run=None, **sections):
    """Every key with its value, as TOML."""
    with run_arguments(run, sections) as arguments:
        return call("config", **arguments)


def check(run=None, **sections):
    """Everything that can be checked without training: data, model, program, memory. Says what the run would be."""
    with run_arguments(run, sections) as arguments:
        return call("check_of_run", **arguments)


def simulate(run=None, cluster=None, **sections):
    """What a step will take and hold, on the machines of a cluster file or those of the run itself."""
    with run_arguments(run, sections) as arguments:
        return Result(**call("simulate_run", cluster=os.fspath(cluster) if cluster else None, **arguments))


def plan(run=None, cluster=None, ranks=None, top=10, quick=False, **sections):
    """The best meshes, schedules, recompute and ZeRO for a cluster: `.best[0].settings` are sections for the others."""
    with run_arguments(run, sections) as arguments:
        found = call("plan", cluster=os.fspath(cluster) if cluster else None, ranks=ranks, top=top, quick=quick,
                     **arguments)
    return Result(tried=found["tried"], why_not=found["why_not"], best=[Result(**p) for p in found["best"]])


def train(run=None, resume=None, quiet=False, **sections):
    """A whole run, as `stretto train` does it; `resume`: a run directory or checkpoint to go on from. Ctrl-C ends it after
    the steps under way, with a checkpoint."""
    if run is None and resume is not None and pathlib.Path(resume, "config.toml").exists():
        run = pathlib.Path(resume, "config.toml")
    with run_arguments(run, sections) as arguments:
        done = Result(**call("train_run", resume=os.fspath(resume) if resume is not None else None, quiet=quiet,
                             **arguments))
    if done.stopped:
        raise KeyboardInterrupt(f"stopped after step {done.steps}; stretto.train(resume={done.directory!r}) goes on")
    return done


def metrics(directory):
    """What a run directory's metrics.jsonl has: a list of numbers (None where there is none) for every key."""
    path = pathlib.Path(directory, "metrics.jsonl")
    try:
        lines = path.read_text().splitlines()
    except OSError as e:
        fault = Fault(str(path), e.strerror, "give the directory of a run")
        raise Error(f"[{fault.where}] {fault.what}; hint: {fault.hint}", [fault], 1) from None
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # a run that is under way, or was killed, may end in half a line
            continue
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: [row.get(key) for row in rows] for key in keys}
