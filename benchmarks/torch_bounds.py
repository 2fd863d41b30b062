"""What a machine needs at least for a PyTorch model: its products at the peak of multiply-adds, and its parameters, inputs and
outputs at the bandwidth of reading. It does not depend on any library; used by torch_models.py.

FLOPs are those that torch counts for matrix products, convolutions and attention (masked elements included). Bytes are those of a
program that keeps everything else in caches. A training step reads parameters and inputs twice, and writes their gradients. Rows of
an embedding are read by index, so a table counts only if a product reads it too."""
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import lamina


def machine():
    """{"threads", "read_gb_per_s", "gflops"}: measured now, by lamina.profile, for products of f32."""
    one = torch.ones(1).numpy()
    with lamina.profile() as profile:
        lamina.gelu(one)
    return profile.data["machine"]


def peak_of(limits, mode):
    """GFLOP/s of products. AMD's processors with AVX512_BF16 multiply twice as many numbers of 16 bits per cycle as of 32; Intel's
    since Sapphire Rapids fewer, without tiles."""
    pairs = not mode.endswith("f32") and torch.cpu._is_avx512_bf16_supported() and not _multiplies_pairs_slowly()
    return limits["gflops"] * (2 if pairs else 1)


def _multiplies_pairs_slowly():
    with open("/proc/cpuinfo") as file:
        about = file.read()
    return "GenuineIntel" in about and "avx512_fp16" in about


def _of_groups(a, b, *_, **__):
    """Rows in groups with a matrix each, or the sums of groups of columns."""
    return 2 * a[0] * a[1] * b[-1]


def _of_convolution_gradients(diff, src, weights, bias, stride, padding, dilation, transposed, output_padding, groups, wanted, **_):
    """torch's own formula ignores groups. Each gradient has the products of the forward pass."""
    pixels = src if transposed else diff
    return (wanted[0] + wanted[1]) * 2 * math.prod(weights) * math.prod(pixels[2:]) * pixels[0]


def flops_of(case):
    """The FLOPs of one call in eager mode. Attention is counted by its products."""
    from torch.utils.flop_counter import FlopCounterMode  # warns without triton; torch_models.py has disabled warnings by now

    formulas = {torch.ops.aten._grouped_mm: _of_groups, torch.ops.aten.convolution_backward: _of_convolution_gradients}
    with FlopCounterMode(display=False, custom_mapping=formulas) as counted, sdpa_kernel(SDPBackend.MATH):
        case.run(case.module)
    return counted.get_total_flops()


def parameters_read(module):
    """Each parameter once, but for the tables that only embeddings read."""
    parts = list(module.modules())
    looked_up = torch.nn.Embedding, torch.nn.EmbeddingBag
    return {id(p): p for part in parts if not isinstance(part, looked_up) for p in part._parameters.values() if p is not None}.values()


def bytes_of(case):
    size = lambda tensors: sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))
    read = size(parameters_read(case.module)) + size(case.args) + size(case.kwargs.values())
    written = size(case.run(case.module)) if not case.training else 0
    if case.is_part and case.training:
        written = 2 * size([case.slope])  # the result, and its gradient
    return read * (3 if case.training else 1) + written


def bound(case, mode, limits):
    """{"gflop", "mb", "ms"}: the work of a call, and the least time for it."""
    flops, moved = flops_of(case), bytes_of(case)
    seconds = flops / (peak_of(limits, mode) * 1e9) + moved / (limits["read_gb_per_s"] * 1e9)
    return {"gflop": flops / 1e9, "mb": moved / 1e6, "ms": seconds * 1e3}
