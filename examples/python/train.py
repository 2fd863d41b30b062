"""A training loop of PyTorch on lamina: forward and backward are compiled, the optimizer is PyTorch's."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import lamina.torch  # registers the backend


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
model = nn.Sequential(Block(64), Block(64), nn.Linear(64, 1))
compiled = torch.compile(model, backend="lamina")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
x = torch.randn(256, 64)
target = x[:, :1] * x[:, 1:2]
losses = []
for step in range(60):
    optimizer.zero_grad()
    loss = F.mse_loss(compiled(x), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
assert losses[-1] < 0.5 * losses[0]
