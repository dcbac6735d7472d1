"""Masks: causal, banded and full ones that are known become attributes of attention; of those that come with a batch,
and let a query see keys side by side, the first key and the end."""

import dataclasses

import torch

from .model import error_of

_hidden = -1e4  # what is added to the scores of keys that are not seen


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


def interval(mask):
    """(since, until) of every row and query, {rows query}, when the keys that it sees lie side by side; a query that
    sees nothing sees 0 to 0. None: they do not, or the mask is a bias. mask: {rows 1 query key}."""
    seen = _seen(mask)
    if mask.dtype != torch.bool and bool((~seen & (mask > _hidden)).any()):
        return None
    seen, keys = seen[:, 0], seen.shape[-1]
    places = torch.arange(keys)
    until = torch.where(seen, places + 1, 0).amax(-1)
    since = torch.where(seen, places, keys).amin(-1).clamp(max=until)
    inside = (places >= since[..., None]) & (places < until[..., None])
    return (since, until) if bool((seen == inside).all()) else None


def end_of(mask, queries, which):
    """One of the two, of a batch's mask."""
    both = interval(mask)
    if both is None:
        raise error_of([("mask", "lets a query see keys that do not lie side by side, and the example's mask did not",
                         "import the module with a batch whose mask has such gaps, too")])
    return both[which].expand(-1, queries).to(torch.int32)
