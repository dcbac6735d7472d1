"""Batches that are made while a step runs."""

import queue
import threading


def ahead(batches, depth=2):
    """What an iterable gives, in its order, read `depth` items ahead by a thread of its own. What it raises is raised
    where its item would be."""
    ready, ended = queue.Queue(depth), threading.Event()

    def put(item):
        while not ended.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def read():
        try:
            for batch in batches:
                put((batch, None))
                if ended.is_set():
                    return
            put((None, StopIteration()))
        except BaseException as e:
            put((None, e))

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            batch, raised = ready.get()
            if isinstance(raised, StopIteration):
                return
            if raised is not None:
                raise raised
            yield batch
    finally:  # the loop may have been left early
        ended.set()
