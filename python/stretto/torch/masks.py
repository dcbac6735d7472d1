"""Masks that are known: causal, banded and full ones become attributes of attention."""

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
