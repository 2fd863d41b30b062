"""Masks of dropout, with the numbers of torch's CPU generator. lamina draws them in a fraction of torch's time.

The numbers are torch's if it uses its own Mersenne Twister for booleans. With MKL on Intel processors it does not. The first draw
compares both, and torch draws if they differ.
"""

from __future__ import annotations

import functools
from typing import Sequence

import torch

from lamina._core import draw_mask

_library = torch.library.Library("lamina", "FRAGMENT")
_library.define("dropout_mask(int[] size, int[] stride, float kept) -> Tensor", tags=[torch.Tag.nondeterministic_seeded])


def _mask(size: Sequence[int], stride: Sequence[int], kept: float) -> torch.Tensor:
    """Returns a mask without gaps, whose elements are drawn in the order of memory, as bernoulli_ does."""
    mask = torch.empty_strided(size, stride, dtype=torch.bool)
    if not _draws_as_torch():
        return mask.bernoulli_(kept)
    # No other thread that holds the GIL draws between the two states.
    state = torch.default_generator.get_state()
    draw_mask(state, mask, kept)
    torch.default_generator.set_state(state)
    return mask


_library.impl("dropout_mask", _mask, "CompositeExplicitAutograd")
dropout_mask = torch.ops.lamina.dropout_mask.default


def is_dense(value: torch.Tensor) -> bool:
    """Whether the elements fill memory, each once, in any order of the axes."""
    step = 1
    for stride, extent in sorted((stride, extent) for extent, stride in zip(value.shape, value.stride()) if extent != 1):
        if stride != step:
            return False
        step *= extent
    return True


@functools.cache
def _draws_as_torch() -> bool:
    generator = torch.Generator()
    generator.manual_seed(7)
    torch.empty(1, dtype=torch.int32).random_(generator=generator)  # an odd number of words
    state = generator.get_state()
    theirs, ours = torch.empty(2, 1000, dtype=torch.bool)
    for kept in (0.9, 1 / 3):
        theirs.bernoulli_(kept, generator=generator)
        draw_mask(state, ours, kept)
        if not torch.equal(ours, theirs) or not torch.equal(state, generator.get_state()):
            return False
    return True
