"""What torch_processes_test.py runs under torchrun: two processes, gloo, each with half of a batch.

    two_processes.py ddp_inside|ddp_outside|fsdp_whole|fsdp_layers

The gradients must be those of the model in eager mode in one process with the whole batch, and lamina must have been called."""
import copy
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import lamina.torch as lt


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.grow, self.shrink = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.shrink(nn.functional.gelu(self.grow(self.norm(x))))


class Model(nn.Module):  # not nn.Sequential: torch.compile skips torch's own frames where DDP calls them
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(), Layer()

    def forward(self, x):
        return self.second(self.first(x))


def compiled(module, reports):
    return torch.compile(module, backend=lambda graph, inputs: lt.backend(graph, inputs, options={"reports": reports}))


def distributed(model, how, reports):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh

    if how == "ddp_outside":
        return DistributedDataParallel(compiled(model, reports))
    if how == "ddp_inside":
        return compiled(DistributedDataParallel(model), reports)
    mesh = init_device_mesh("cpu", (2,))
    if how == "fsdp_layers":
        for part in (model.first, model.second):
            fully_shard(part, mesh=mesh)
            part.compile(backend=lambda graph, inputs: lt.backend(graph, inputs, options={"reports": reports}))
        return fully_shard(model, mesh=mesh)
    return compiled(fully_shard(model, mesh=mesh), reports)


def main(how):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model, batch, reports = Model(), torch.randn(8, 16), []
    exact = copy.deepcopy(model)
    exact(batch).square().mean().backward()
    run, rank = distributed(model, how, reports), dist.get_rank()
    run(batch[4 * rank:4 * rank + 4]).square().mean().backward()
    for (name, p), q in zip(model.named_parameters(), exact.parameters()):
        grad = p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad
        torch.testing.assert_close(grad, q.grad, atol=1e-6, rtol=1e-5, msg=lambda text: f"{name}: {text}")
    kinds = {report.name.split("_")[0] for report in reports}
    assert kinds == {"forward", "backward"} and all(report.share == 1 for report in reports), [report.summary() for report in reports]
    dist.destroy_process_group()
    os._exit(0)  # gloo's thread may release Python objects while the interpreter ends, which aborts the process (torch 2.15)


main(sys.argv[1])
