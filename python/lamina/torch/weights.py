"""Packs weights once, as long as they do not change (docs/decisions/0027-packed-weights.md).

A convolution reads its weights in a layout of its own, and packing them takes time in each call. Products of floats read matrices
as they are, and pack them only if a user asks for it. A graph gets its weights anew in each call. A weight is *settled* when calls in a row bring the same storage, address and count
of writes (`_version`). Settled weights become constants of a second executable, which packs them in its first run.

torch does not count all writes (`.data`, numpy, fused optimizers), so each call also compares a fingerprint of the bytes.
A changed weight is packed again only after more calls without a change, so that training does not pack.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import weakref
from typing import Any, NamedTuple, Optional

import torch

from lamina import _core
from lamina._core import LogicalTensor
from lamina._program import Linked

log = logging.getLogger("lamina.torch")
SMALLEST = 1 << 16  # bytes: packing less takes microseconds
READS = 129  # of each element in a call: with fewer, comparing the bytes takes longer than what packing saves
WELL_USED = 16  # calls with packed weights after which a change does not delay the next packing
LONGEST_WAIT = 1 << 20  # calls
SHARE_OF_MEMORY = 4  # by default, packed weights take at most this part of the memory that is available without them


class Settings(NamedTuple):
    limit: Optional[int] = None  # bytes of packed weights in the process; None: a part of the available memory, for what needs packing
    freeze: bool = False  # trust torch's count of writes: bytes are compared only if there is none


class _Memory:
    """The bytes of all packed weights in the process."""

    def __init__(self) -> None:
        self.lock, self.held = threading.RLock(), 0

    def take(self, size: int, limit: int) -> bool:
        with self.lock:
            if self.held + size > limit:
                return False
            self.held += size
            return True

    def give(self, size: int) -> None:
        with self.lock:
            self.held -= size


_memory = _Memory()


def packed_bytes() -> int:
    """Returns the bytes of all packed weights in the process."""
    return _memory.held


def limit_of(settings: Settings) -> int:
    """Returns the most bytes that packed weights may take now."""
    if settings.limit is not None:
        return settings.limit
    return (_available() + _memory.held) // SHARE_OF_MEMORY


def _available() -> int:
    """Returns the bytes that the process can still use: the machine's, or those of its control group."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) * 1024)
    most, used = _text("/sys/fs/cgroup/memory.max").strip(), _text("/sys/fs/cgroup/memory.current").strip()
    if most.isdigit() and used.isdigit():
        found.append(max(int(most) - int(used), 0))
    return min(found)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


class Candidate(NamedTuple):
    """An argument of a call that products use as weights."""

    place: int
    name: str
    size: int  # bytes
    refused: str  # why it is never packed; "" if it may be


def candidate(place: int, name: str, value: torch.Tensor, use: Any, is_static: bool, settings: Settings) -> Candidate:
    """`use`: a lowering.WeightsUse."""
    size, why = value.numel() * value.element_size(), ""
    if settings.limit == 0:
        why = "the option pack is 0"
    elif not is_static:
        why = "it is not a parameter or buffer"
    elif max(size, use.size) < SMALLEST:
        why = "it is small"
    elif settings.limit is None and not settings.freeze and use.is_matrix and _is_read_in_place(value.dtype):
        why = "products read it as it is (options freeze and pack: it is packed)"
    elif use.reads < READS and not settings.freeze:
        why = f"a call reads each element {use.reads} times; comparing its bytes pays from {READS} on (option freeze: they are not compared)"
    return Candidate(place, name, size, why)


@functools.cache
def _is_read_in_place(dtype: torch.dtype) -> bool:
    """Whether lamina's own products multiply this type, at full speed in place. With instructions for tiles (AMX), oneDNN
    multiplies bf16, from packed weights."""
    if dtype == torch.bfloat16:
        return not getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()
    return dtype in (torch.float32, torch.float64)


class _Weight:
    """What earlier calls have seen of the weights at one address of a storage."""

    def __init__(self, storage: weakref.ref, version: int) -> None:
        self.storage, self.version = storage, version
        self.calls, self.wait, self.is_packed = 0, 1, False

    def change(self) -> None:
        """Doubles the number of calls before the next packing, unless the packed weights were used often."""
        if self.is_packed:
            self.wait = 1 if self.calls >= self.wait + WELL_USED else min(2 * self.wait, LONGEST_WAIT)
        self.calls, self.is_packed = 0, False


class _Packed:
    """An executable whose constants are the weights at `places`."""

    def __init__(self, run: Any, settled: tuple, places: list, fingerprints: Optional[list], size: int) -> None:
        self.run, self.settled, self.places, self.fingerprints = run, settled, places, fingerprints
        weakref.finalize(self, _memory.give, size).atexit = False


class Packing:
    """Chooses the executable of each call: `linked`'s own, or one with packed weights."""

    def __init__(self, linked: Linked, ports: list, candidates: list, settings: Settings) -> None:
        self.linked, self.settings, self.candidates = linked, settings, candidates
        self.ids = [port.tensor.id for port in ports]
        self.places = [c.place for c in candidates if not c.refused]
        self.weights: dict[tuple, _Weight] = {}  # by storage and address
        self.packed: dict[tuple, _Packed] = {}  # by the keys of the weights at all places
        self.lock = threading.RLock()  # a finalizer may run while this thread has it

    def choose(self, tensors: tuple) -> Any:
        given = [tensors[place] for place in self.places]
        with self.lock:
            storages = [tensor.untyped_storage() for tensor in given]
            keys = tuple((id(storage), tensor.data_ptr()) for storage, tensor in zip(storages, given))
            each = dict(zip(keys, zip(storages, given)))  # tied weights once
            is_settled = {key: self._is_settled(key, *own) for key, own in each.items()}
            settled = tuple(place for place, key in zip(self.places, keys) if is_settled[key])
            if not settled:
                return self.linked.run
            found = self.packed.get(keys)
            if found is None or found.settled != settled:
                return self._pack(keys, settled, tensors)
        if found.fingerprints is None:
            return found.run
        now = _fingerprints([tensors[place] for place in found.places])
        if now == found.fingerprints:
            return found.run
        with self.lock:
            for place, before, after in zip(found.places, found.fingerprints, now):
                if before != after:
                    self._changed(keys[self.places.index(place)])
        return self.linked.run

    def _is_settled(self, key: tuple, storage: Any, tensor: torch.Tensor) -> bool:
        version = 0 if tensor.is_inference() else tensor._version  # tensors of inference mode have no count
        weight = self.weights.get(key)
        if weight is None or weight.storage() is not storage:
            gone = weakref.WeakMethod(self._forget)
            reference = weakref.ref(storage, lambda _: gone() and gone()(key))
            self.weights[key] = weight = _Weight(reference, version)
            return self.settings.freeze
        if weight.version != version:
            weight.version = version
            self._changed(key)
            return False
        weight.calls += 1
        return weight.calls >= weight.wait

    def _changed(self, key: tuple) -> None:
        if key in self.weights:
            self.weights[key].change()
        self._drop(key)

    def _forget(self, key: tuple) -> None:
        """The storage is gone."""
        with self.lock:
            self.weights.pop(key, None)
            self._drop(key)

    def _drop(self, key: tuple) -> None:
        self.packed = {keys: packed for keys, packed in self.packed.items() if key not in keys}

    def _pack(self, keys: tuple, settled: tuple, tensors: tuple) -> Any:
        self.packed.pop(keys, None)
        trusted = self.settings.freeze and not any(tensors[place].is_inference() for place in settled)
        fingerprints = None if trusted else _fingerprints([tensors[place] for place in settled])
        codes, constant, size = self._compiled({self.ids[place] for place in settled}, limit_of(self.settings))
        places = [place for place in settled if self.ids[place] in constant]
        for place in settled:
            weight = self.weights[keys[self.places.index(place)]]
            weight.is_packed = True
            if not places:  # there is no memory for it: tries again later
                weight.change()
        if not places:
            return self.linked.run
        if fingerprints is not None:
            fingerprints = [number for place, number in zip(settled, fingerprints) if place in places]
        self.packed[keys] = found = _Packed(self.linked.joined(codes), settled, places, fingerprints, size)
        log.info("packs %d weights, %d bytes", len(places), size)
        return found.run

    def _compiled(self, wanted: set, limit: int) -> tuple:
        """Returns the compiled partitions, the constants that they pack, and their bytes. Takes the bytes from the limit."""
        codes, constant, total = [], set(), 0
        for partition, code in zip(self.linked.partitions, self.linked.compiled):
            code, own, size = _packing_code(partition, code, [port.id for port in partition.inputs if port.id in wanted], limit)
            codes.append(code)
            constant.update(own)
            total += size
        return codes, constant, total

    def told(self) -> list:
        """Returns (candidate, why it is not packed, or "") for each, as if all were settled, and the bytes of those packed."""
        _, constant, size = self._compiled({self.ids[place] for place in self.places}, limit_of(self.settings))
        _memory.give(size)
        why = lambda c: c.refused or ("" if self.ids[c.place] in constant else "the limit of memory, or nothing to pack")
        return [(candidate, why(candidate)) for candidate in self.candidates], size


def _fingerprints(tensors: list) -> list:
    return _core.fingerprints(tensors, torch.get_num_threads())


def _packing_code(partition: _core.Partition, code: _core.CompiledPartition, wanted: list, limit: int) -> tuple:
    """Returns the code that packs as many of the wanted weights as fit, these weights, and their bytes, taken from the limit."""
    while wanted:
        packing = _with_constants(partition, code, wanted)
        size = json.loads(packing.info_json())["constant_bytes"]
        if size == 0:
            break
        if _memory.take(size, limit):
            return packing, wanted, size
        room = max(limit - _memory.held, 0)
        wanted = wanted[:min(len(wanted) - 1, len(wanted) * room // size)]
    return code, [], 0


def _with_constants(partition: _core.Partition, code: _core.CompiledPartition, wanted: list) -> _core.CompiledPartition:
    def port(tensor: LogicalTensor) -> LogicalTensor:
        own = code.tensor(tensor.id)
        return LogicalTensor(own.id, own.dtype, own.shape, own.strides, "constant") if own.id in wanted else own

    return partition.compile([port(t) for t in partition.inputs], [code.tensor(t.id) for t in partition.outputs])
