"""Schedules: a name, a CSV file, or rows of actions, one per actor: [["0F0", "0B0"], [(1, "F", 0), (1, "B", 0)]]."""

from ._library import Picture, Result, call, schedule_text


class Rows(list):
    """A list of cells per actor, which a notebook shows as a picture of the step."""

    def picture(self, F=1, I=1, W=1, R=None, message=0):
        """With these times of a full stage's phases and of a message."""
        return Picture(call("schedule_picture", schedule=schedule_text(self), F=F, I=I, W=W, R=R, message=message))

    def _repr_svg_(self):
        return self.picture().svg


def schedule(name, actors=None, microbatches=None, chunks=None):
    """The rows of a schedule: a list per actor of cells such as '0F3' (stage 0, forward, microbatch 3)."""
    return Rows(call("schedule_rows", schedule=schedule_text(name), actors=actors, microbatches=microbatches,
                     chunks=chunks))


def check_schedule(schedule, actors=None, microbatches=None, chunks=None):
    """Actors, stages, messages, the smallest capacity that cannot deadlock; an Error with all that is wrong."""
    return Result(**call("check_of_schedule", schedule=schedule_text(schedule), actors=actors,
                         microbatches=microbatches, chunks=chunks))


def simulate_schedule(schedule, actors=None, microbatches=None, chunks=None, F=1, I=1, W=1, R=None, message=0):
    """Makespan, period, bubble and peak activations, with these times of a full stage's phases and of a message."""
    return Result(**call("simulate_schedule", schedule=schedule_text(schedule), actors=actors,
                         microbatches=microbatches, chunks=chunks, F=F, I=I, W=W, R=R, message=message))
