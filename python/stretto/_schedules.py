"""Schedules: a name, a CSV file, or rows of actions, one per actor: [["0F0", "0B0"], [(1, "F", 0), (1, "B", 0)]]."""

from ._library import Result, call, schedule_as_text


def schedule(name, actors=None, microbatches=None, chunks=None):
    """The rows of a schedule: a list per actor of cells such as '0F3' (stage 0, forward, microbatch 3)."""
    with schedule_as_text(name) as text:
        return call("schedule_rows", schedule=text, actors=actors, microbatches=microbatches, chunks=chunks)


def check_schedule(schedule, actors=None, microbatches=None, chunks=None):
    """Actors, stages, messages, the smallest capacity that cannot deadlock; an Error with all that is wrong."""
    with schedule_as_text(schedule) as text:
        return Result(**call("check_of_schedule", schedule=text, actors=actors, microbatches=microbatches,
                             chunks=chunks))


def simulate_schedule(schedule, actors=None, microbatches=None, chunks=None, F=1, I=1, W=1, R=None, message=0):
    """Makespan, period, bubble and peak activations, with these times of a full stage's phases and of a message."""
    with schedule_as_text(schedule) as text:
        return Result(**call("simulate_schedule", schedule=text, actors=actors, microbatches=microbatches,
                             chunks=chunks, F=F, I=I, W=W, R=R, message=message))
