"""Masks that are known: causal, banded and full ones become attributes of attention, paddings an operand."""

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class Mask:
    causal: bool = False
    window: int = 0


def _seen(mask):
    """True where a query sees a key, {.. query key}."""
    return mask if mask.dtype == torch.bool else mask == 0


def fixed_mask(mask):
    """What a constant mask of places is: causal, a band, or everything. None: something else."""
    seen = _seen(mask)
    seen = seen.reshape(-1, *seen.shape[-2:])
    if not bool((seen == seen[:1]).all()):
        return None
    seen = seen[0]
    if bool(seen.all()):
        return Mask()
    queries, keys = seen.shape
    if queries != keys:
        return None
    places = torch.arange(queries)
    back = places[:, None] - places[None]
    widest = int(back[seen].max())
    window = widest + 1
    if bool((seen == ((back >= 0) & (back < window))).all()):
        return Mask(True, 0 if window == queries else window)
    return None


def first_unseen(mask):
    """Of every row and query how many keys it sees, when those are the first ones. None: they are not.

    {rows .. query key} of numbers that depend on the batch: what padding on the right makes of a mask."""
    seen = _seen(mask)
    until = seen.sum(-1)
    first = torch.arange(seen.shape[-1], device=seen.device) < until[..., None]
    return until.to(torch.int32) if bool((seen == first).all()) else None


def interval(mask):
    """(since, until) of every row and query, when the keys that it sees lie side by side. None: they do not.

    A query that sees nothing sees 0 to 0."""
    seen = _seen(mask)
    keys = seen.shape[-1]
    places = torch.arange(keys, device=seen.device)
    until = torch.where(seen, places + 1, 0).amax(-1)
    since = torch.where(seen, places, keys).amin(-1).clamp(max=until)
    inside = (places >= since[..., None]) & (places < until[..., None])
    return (since.to(torch.int32), until.to(torch.int32)) if bool((seen == inside).all()) else None
