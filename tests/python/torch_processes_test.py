"""More than one process: torchrun with two of them, and data loaders that fork."""
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import lamina  # noqa: E402
import lamina.torch as lt  # noqa: E402

if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)


@pytest.mark.parametrize("how", ["ddp_inside", "ddp_outside", "fsdp_whole", "fsdp_layers"])
def test_gradients_are_those_of_one_process(how):
    script = pathlib.Path(__file__).with_name("two_processes.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


class Normed(torch.utils.data.Dataset):
    """Its items are computed by lamina, in the worker."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return lamina.layer_norm(torch.arange(256 * 64, dtype=torch.float32).sin().reshape(256, 64) + i)


def test_workers_that_are_forked_compute():
    model = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Linear(64, 64))
    run = torch.compile(model, backend=lt.backend)
    with torch.no_grad():
        run(torch.randn(256, 64))  # starts threads in this process before it forks
        seen = list(torch.utils.data.DataLoader(Normed(), num_workers=2, multiprocessing_context="fork", timeout=60))
        assert len(seen) == 6
        for i, item in enumerate(seen):
            torch.testing.assert_close(item[0], Normed()[i])
        torch.testing.assert_close(run(seen[0][0]), model(seen[0][0]))
