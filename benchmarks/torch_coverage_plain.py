"""Models in plain PyTorch for torch_coverage.py, as papers and tutorials write them, and small.

MODELS: name -> a function that returns (module, (args, kwargs)).
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Of(nn.Module):
    """A function of the inputs and of named parts."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleDict(parts)

    def forward(self, *inputs):
        return self.function(self.parts, *inputs)


def case(function, *inputs, **parts):
    return Of(function, **parts), (inputs, {})


def ids(*shape, among=50):
    return torch.randint(0, among, shape)


def mlp(*widths, activation=nn.ReLU):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), activation())]
    return nn.Sequential(*layers[:-1])


def lstm_cells():
    def run(p, words):
        x = p["words"](words)
        h = c = x.new_zeros(words.shape[0], 32)
        states = []
        for step in range(x.shape[1]):
            h, c = p["cell"](x[:, step], (h, c))
            states.append(h)
        return p["out"](torch.stack(states, 1))

    return case(run, ids(2, 6), words=nn.Embedding(50, 32), cell=nn.LSTMCell(32, 32), out=nn.Linear(32, 50))


def gru_cells():
    def run(p, x):
        h = x.new_zeros(x.shape[0], 24)
        for step in x.unbind(1):
            h = p["cell"](step, h)
        return h

    return case(run, torch.randn(2, 6, 8), cell=nn.GRUCell(8, 24))


def temporal_convolutions():
    block = lambda d: nn.Sequential(nn.ConstantPad1d((2 * d, 0), 0.0), nn.utils.parametrizations.weight_norm(nn.Conv1d(16, 16, 3, dilation=d)), nn.ReLU())
    return case(lambda p, x: x + p["two"](p["one"](x)), torch.randn(2, 16, 20), one=block(1), two=block(2))


def wavenet():
    def run(p, x):
        total = 0
        for conv, out in zip(p["gates"], p["outs"]):
            a, b = conv(F.pad(x, (conv.dilation[0], 0))).chunk(2, 1)
            made = out(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + made, total + made
        return total

    return case(run, torch.randn(2, 16, 32), gates=nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=d) for d in (1, 2, 4)), outs=nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(3)))


def u_net():
    block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    def run(p, x):
        first = p["down1"](x)
        second = p["down2"](F.max_pool2d(first, 2))
        return p["last"](torch.cat([p["up"](second), first], 1))

    return case(run, torch.randn(2, 3, 16, 16), down1=block(3, 8), down2=block(8, 16), up=nn.ConvTranspose2d(16, 8, 2, stride=2), last=block(16, 4))


def autoencoder():
    def run(p, x):
        mean, spread = p["encode"](x).chunk(2, -1)
        return p["decode"](mean + torch.exp(spread / 2)), -0.5 * (1 + spread - mean**2 - spread.exp()).sum()

    return case(run, torch.rand(4, 64), encode=mlp(64, 32, 16), decode=nn.Sequential(mlp(8, 32, 64), nn.Sigmoid()))


def vector_quantizer():
    def run(p, x):
        z, table = p["encode"](x), p["table"].weight
        nearest = torch.cdist(z, table, compute_mode="use_mm_for_euclid_dist").argmin(-1)
        code = p["table"](nearest)
        return p["decode"](z + (code - z).detach()), F.mse_loss(code, z.detach())

    return case(run, torch.randn(6, 16), encode=mlp(16, 16, 8), decode=mlp(8, 16), table=nn.Embedding(20, 8))


def generator():
    up = lambda a, b: nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
    return case(lambda p, z: torch.tanh(p["last"](p["two"](p["one"](z[:, :, None, None])))), torch.randn(2, 16), one=nn.ConvTranspose2d(16, 16, 4),
                two=up(16, 8), last=nn.ConvTranspose2d(8, 3, 4, 2, 1))


def discriminator():
    down = lambda a, b: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Conv2d(a, b, 4, 2, 1)), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2))
    return case(lambda p, x: p["last"](p["two"](p["one"](x))), torch.randn(2, 3, 16, 16), one=down(3, 8), two=down(8, 16), last=nn.Conv2d(16, 1, 4))


def style_transfer():
    layer = lambda a, b: nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(a, b, 3), nn.InstanceNorm2d(b, affine=True), nn.ReLU())
    return case(lambda p, x: p["last"](F.interpolate(p["two"](p["one"](x)), scale_factor=2, mode="nearest")), torch.randn(1, 3, 12, 12), one=layer(3, 8), two=layer(8, 8),
                last=nn.Conv2d(8, 3, 3, padding=1, padding_mode="replicate"))


def circular_convolutions():
    return case(lambda p, x: p["two"](F.gelu(p["one"](x))), torch.randn(2, 3, 10, 10), one=nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"),
                two=nn.Conv2d(8, 3, 3, padding=1, padding_mode="reflect"))


def super_resolution():
    return case(lambda p, x: F.pixel_shuffle(p["up"](F.relu(p["one"](x))), 2) + F.interpolate(x, scale_factor=2, mode="bilinear"), torch.randn(1, 3,
                12, 12), one=nn.Conv2d(3, 8, 5, padding=2), up=nn.Conv2d(8, 12, 3, padding=1))


def recommender():
    """DLRM: bags of embeddings and products of all pairs."""
    def run(p, dense, sparse):
        parts = torch.stack([p["bottom"](dense), *(table(sparse[:, i]) for i, table in enumerate(p["tables"]))], 1)
        pairs = parts @ parts.transpose(1, 2)
        i, j = torch.tril_indices(4, 4, -1)
        return p["top"](torch.cat([parts[:, 0], pairs[:, i, j]], 1)).sigmoid()

    return case(run, torch.randn(4, 6), ids(4, 3, 5), bottom=mlp(6, 16, 8), tables=nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3)), top=mlp(14, 16, 1))


def factorization_machine():
    def run(p, fields):
        e = p["factors"](fields)
        pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(-1, keepdim=True)
        return torch.sigmoid(p["linear"](fields).sum(1) + pairs + p["deep"](e.flatten(1)))

    return case(run, ids(4, 5), factors=nn.Embedding(50, 8), linear=nn.Embedding(50, 1), deep=mlp(40, 16, 1))


def collaborative_filter():
    return case(lambda p, u, i: p["top"](torch.cat([p["people"](u) * p["things"](i), p["deep"](torch.cat([p["people"](u), p["things"](i)], -1))],
                -1)), ids(8), ids(8), people=nn.Embedding(50, 8), things=nn.Embedding(50, 8),
                deep=mlp(16, 16, 8), top=nn.Linear(16, 1))


def point_net():
    return case(lambda p, x: p["top"](p["each"](x).max(1)[0]), torch.randn(2, 30, 3), each=mlp(3, 16, 32), top=mlp(32, 16, 5))


def graph_convolution():
    def run(p, x, edges):
        source, target = edges
        for layer in p["layers"]:
            x = F.relu(layer(torch.zeros_like(x).index_add(0, target, x[source]) / (1 + x.new_zeros(x.shape[0]).index_add(0, target, x.new_ones(edges.shape[1])))[:, None]))
        return x

    return case(run, torch.randn(10, 8), ids(2, 30, among=10), layers=nn.ModuleList(nn.Linear(8, 8) for _ in range(2)))


def graph_attention():
    def run(p, x, edges):
        h = p["linear"](x)
        source, target = edges
        score = F.leaky_relu(p["left"](h)[source] + p["right"](h)[target]).squeeze(-1)
        weight = torch.exp(score - score.max())
        total = x.new_zeros(x.shape[0]).scatter_add(0, target, weight)
        weight = weight / total.gather(0, target)
        return torch.zeros_like(h).scatter_add(0, target[:, None].expand(-1, h.shape[1]), weight[:, None] * h[source])

    return case(run, torch.randn(10, 8), ids(2, 30, among=10), linear=nn.Linear(8, 8), left=nn.Linear(8, 1), right=nn.Linear(8, 1))


def spatial_transformer():
    def run(p, x):
        theta = p["where"](x.flatten(1)).view(-1, 2, 3)
        return p["last"](F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False))

    return case(run, torch.randn(2, 3, 8, 8), where=mlp(192, 16, 6), last=nn.Conv2d(3, 4, 3))


def sine_network():
    return case(lambda p, x: p["last"](torch.sin(30 * p["two"](torch.sin(30 * p["one"](x))))), torch.rand(20, 2), one=nn.Linear(2, 16), two=nn.Linear(16, 16), last=nn.Linear(16, 3))


def radiance_field():
    def run(p, x, directions):
        octaves = 2.0 ** torch.arange(4) * math.pi
        waves = lambda t: torch.cat([t, *(f(t[..., None] * octaves).flatten(-2) for f in (torch.sin, torch.cos))], -1)
        made = p["body"](waves(x))
        density, color = F.softplus(made[..., 0]), torch.sigmoid(p["color"](torch.cat([made[..., 1:], waves(directions)], -1)))
        alpha = 1 - torch.exp(-density * 0.1)
        light = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return ((alpha * light)[..., None] * color).sum(1)

    return case(run, torch.randn(4, 8, 3), torch.randn(4, 8, 3), body=mlp(27, 32, 17), color=mlp(43, 16, 3))


def neural_ode():
    def run(p, x):
        for _ in range(3):
            a = p["slope"](x)
            b = p["slope"](x + 0.05 * a)
            c = p["slope"](x + 0.05 * b)
            x = x + 0.1 / 6 * (a + 2 * b + 2 * c + p["slope"](x + 0.1 * c))
        return x

    return case(run, torch.randn(4, 6), slope=mlp(6, 16, 6, activation=nn.Tanh))


def coupling_flow():
    def run(p, x):
        log_det = 0
        for net in p["nets"]:
            left, right = x.chunk(2, -1)
            scale, shift = net(left).chunk(2, -1)
            scale = torch.tanh(scale)
            x, log_det = torch.cat([right * scale.exp() + shift, left], -1).flip(-1), log_det + scale.sum(-1)
        return -0.5 * x.square().sum(-1) + log_det

    return case(run, torch.randn(5, 8), nets=nn.ModuleList(mlp(4, 16, 8) for _ in range(2)))


def transformer_of_torch():
    return case(lambda p, x, y: p["both"](x, y), torch.randn(2, 8, 16), torch.randn(2, 6, 16), both=nn.Transformer(16, 2, 2, 2, 32, dropout=0.0, batch_first=True))


def encoder_of_torch():
    return case(lambda p, x: p["layers"](x, mask=nn.Transformer.generate_square_subsequent_mask(8), is_causal=True), torch.randn(2, 8, 16),
                layers=nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True), 2))


def linear_attention():
    def run(p, x):
        q, k, v = p["qkv"](x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = torch.cumsum(k[..., :, None] * v[..., None, :], 2)
        return p["out"](((q[..., None, :] @ state).squeeze(-2) / (q * k.cumsum(2)).sum(-1, keepdim=True)).transpose(1, 2).flatten(2))

    return case(run, torch.randn(2, 10, 16), qkv=nn.Linear(16, 48), out=nn.Linear(16, 16))


def retention():
    def run(p, x):
        q, k, v = p["qkv"](x).chunk(3, -1)
        n = torch.arange(x.shape[1])
        decay = torch.where(n[:, None] >= n, 0.9 ** (n[:, None] - n).clamp(min=0).float(), 0.0)
        return p["norm"](((q @ k.transpose(1, 2)) * decay) @ v)

    return case(run, torch.randn(2, 10, 16), qkv=nn.Linear(16, 48), norm=nn.LayerNorm(16))


def biased_attention():
    def run(p, x):
        q, k, v = p["qkv"](x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        n = torch.arange(x.shape[1])
        slopes = torch.tensor([0.5, 0.25])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=-(n[:, None] - n).abs() * slopes[:, None, None]).transpose(1, 2).flatten(2)

    return case(run, torch.randn(2, 10, 16), qkv=nn.Linear(16, 48))


def complex_rotary():
    def run(p, x):
        q, k, v = p["qkv"](x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        turn = torch.polar(torch.ones(10, 4), torch.outer(torch.arange(10).float(), 10000 ** -(torch.arange(4) / 4)))
        turned = lambda t: torch.view_as_real(torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)
        return F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True).transpose(1, 2).flatten(2)

    return case(run, torch.randn(2, 10, 16), qkv=nn.Linear(16, 48))


def mixture_of_experts():
    def run(p, x):
        weight, chosen = torch.topk(p["gate"](x).softmax(-1), 2)
        weight = x.new_zeros(x.shape[0], 4).scatter(1, chosen, weight / weight.sum(-1, keepdim=True))
        return sum(weight[:, i:i + 1] * expert(x) for i, expert in enumerate(p["experts"]))

    return case(run, torch.randn(6, 16), gate=nn.Linear(16, 4), experts=nn.ModuleList(mlp(16, 16, 16) for _ in range(4)))


def spline_network():
    """A Kolmogorov-Arnold layer: B-splines of the inputs."""
    def run(p, x):
        knots = torch.linspace(-2, 2, 12)
        t = x[..., None]
        basis = ((t >= knots[:-1]) & (t < knots[1:])).to(x.dtype)
        for order in (1, 2, 3):
            left = (t - knots[:-(order + 1)]) / (knots[order:-1] - knots[:-(order + 1)])
            right = (knots[order + 1:] - t) / (knots[order + 1:] - knots[1:-order])
            basis = left * basis[..., :-1] + right * basis[..., 1:]
        return p["splines"](basis.flatten(1)) + p["base"](F.silu(x))

    return case(run, torch.rand(6, 5) - 0.5, splines=nn.Linear(40, 8), base=nn.Linear(5, 8))


def graph_pooling():
    def run(p, x, adjacency):
        assign = p["assign"](adjacency @ x).softmax(-1)
        return assign.transpose(1, 2) @ p["embed"](adjacency @ x), assign.transpose(1, 2) @ adjacency @ assign

    return case(run, torch.randn(2, 10, 8), torch.rand(2, 10, 10), assign=nn.Linear(8, 4), embed=nn.Linear(8, 8))


def contrastive():
    def run(p, a, b):
        a, b = F.normalize(p["net"](a), dim=-1), F.normalize(p["net"](b), dim=-1)
        scores = a @ b.t() / 0.1
        return F.cross_entropy(scores, torch.arange(scores.shape[0])) + F.triplet_margin_loss(a, b, b.roll(1, 0)) + F.cosine_embedding_loss(a, b, torch.ones(a.shape[0]))

    return case(run, torch.randn(6, 16), torch.randn(6, 16), net=mlp(16, 32, 8))


def losses():
    def run(p, x, y):
        z = p["net"](x)
        return (F.cross_entropy(z, y, weight=torch.linspace(0.5, 1.5, 5).to(z.dtype), label_smoothing=0.1) + F.smooth_l1_loss(z, z.detach() * 0.5) + F.huber_loss(z, -z.detach())
                + F.binary_cross_entropy_with_logits(z, torch.ones_like(z)) + F.kl_div(z.log_softmax(-1), z.detach().softmax(-1), reduction="batchmean"))

    return case(run, torch.randn(6, 16), ids(6, among=5), net=mlp(16, 32, 5))


def angular_margin():
    def run(p, x, y):
        cosine = F.linear(F.normalize(p["net"](x)), F.normalize(p["classes"].weight))
        angle = torch.acos(cosine.clamp(-0.999, 0.999))
        return F.cross_entropy(16 * torch.where(F.one_hot(y, 5).bool(), torch.cos(angle + 0.3), cosine), y)

    return case(run, torch.randn(6, 16), ids(6, among=5), net=mlp(16, 32, 8), classes=nn.Linear(8, 5, bias=False))


def random_field():
    """The log partition function of a linear chain."""
    def run(p, x):
        scores, state = p["emit"](x), None
        for step in scores.unbind(1):
            state = step if state is None else torch.logsumexp(state[:, :, None] + p["move"].weight, 1) + step
        return torch.logsumexp(state, 1)

    return case(run, torch.randn(3, 6, 8), emit=nn.Linear(8, 5), move=nn.Linear(5, 5, bias=False))


def forecast_basis():
    def run(p, x):
        total = 0
        for block, back, ahead in zip(p["blocks"], p["back"], p["ahead"]):
            h = block(x)
            x, total = x - back(h), total + ahead(h)
        return total

    parts = lambda n: nn.ModuleList(nn.Linear(16, n) for _ in range(2))
    return case(run, torch.randn(4, 12), blocks=nn.ModuleList(mlp(12, 16, 16) for _ in range(2)), back=parts(12), ahead=parts(4))


def highway():
    def run(p, x):
        for gate, layer in zip(p["gates"], p["layers"]):
            g = torch.sigmoid(gate(x))
            x = g * F.relu(layer(x)) + (1 - g) * x
        return x

    return case(run, torch.randn(4, 16), gates=nn.ModuleList(nn.Linear(16, 16) for _ in range(2)), layers=nn.ModuleList(nn.Linear(16, 16) for _ in range(2)))


def text_convolutions():
    return case(lambda p, w: p["out"](torch.cat([F.relu(c(p["words"](w).transpose(1, 2))).max(-1)[0] for c in p["convs"]], 1)), ids(2, 12), words=nn.Embedding(50, 16),
                convs=nn.ModuleList(nn.Conv1d(16, 8, k) for k in (2, 3, 4)), out=nn.Linear(24, 3))


def capsules():
    def run(p, x):
        votes = p["votes"](x).view(x.shape[0], -1, 4, 8)
        logits = votes.new_zeros(votes.shape[:3])
        for _ in range(2):
            pooled = (logits.softmax(2)[..., None] * votes).sum(1)
            norm = pooled.square().sum(-1, keepdim=True)
            made = pooled * norm / (1 + norm) / (norm + 1e-8).sqrt()
            logits = logits + (votes * made[:, None]).sum(-1)
        return made.norm(dim=-1)

    return case(run, torch.randn(2, 6, 16), votes=nn.Linear(16, 32))


def pyramid_pooling():
    """Adaptive pools of sizes that do not divide."""
    def run(p, x):
        parts = [F.interpolate(conv(F.adaptive_avg_pool2d(x, n)), size=x.shape[2:], mode="bilinear", align_corners=False) for n, conv in zip((1, 2, 3, 6), p["convs"])]
        return p["out"](torch.cat([x, *parts], 1)), F.adaptive_max_pool2d(x, 3)

    return case(run, torch.randn(2, 8, 10, 11), convs=nn.ModuleList(nn.Conv2d(8, 2, 1) for _ in range(4)), out=nn.Conv2d(16, 4, 3, padding=1))


def patches_by_unfold():
    def run(p, x):
        h = p["each"](F.unfold(x, 4, stride=2, padding=1).transpose(1, 2)).transpose(1, 2)
        return F.fold(h, x.shape[2:], 4, stride=2, padding=1)

    return case(run, torch.randn(2, 3, 12, 12), each=mlp(48, 32, 48))


def spectral_mixing():
    """FNet's and Hyena's transforms."""
    return case(lambda p, x: p["out"](torch.fft.fft2(x).real + torch.fft.irfft(torch.fft.rfft(x, n=32, dim=1) * torch.fft.rfft(p["filter"].weight,
                n=32, dim=0), n=32, dim=1)[:, :16]), torch.randn(2, 16, 8), filter=nn.Embedding(16, 8), out=nn.Linear(8, 8))


def gaussian_mixture():
    def run(p, x):
        weight, mean, spread = p["net"](x).unflatten(-1, (3, 4)).unbind(-2)
        spread = F.softplus(spread) + 1e-3
        log_p = -0.5 * ((x[:, :1] - mean) / spread) ** 2 - torch.log(spread) - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(weight.log_softmax(-1) + log_p, -1), torch.log1p(torch.expm1(spread).abs()), torch.erf(mean / math.sqrt(2))

    return case(run, torch.randn(8, 3), net=mlp(3, 16, 12, activation=nn.SELU))


def actor_critic():
    def run(p, x, actions, advantage, old):
        logits = p["policy"](x).log_softmax(-1)
        ratio = torch.exp(logits.gather(1, actions[:, None]).squeeze(1) - old)
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        return -gain + 0.5 * F.mse_loss(p["value"](x).squeeze(-1), advantage) + 0.01 * (logits.exp() * logits).sum(-1).mean()

    return case(run, torch.randn(8, 5), ids(8, among=3), torch.randn(8), -torch.rand(8), policy=mlp(5, 16, 3, activation=nn.Tanh), value=mlp(5, 16, 1, activation=nn.Tanh))


def quantization_aware():
    def run(p, x):
        fake = lambda t: t + ((torch.round(t / 0.05).clamp(-128, 127) * 0.05) - t).detach()
        return F.linear(fake(F.relu(F.linear(fake(x), fake(p["one"].weight)))), fake(p["two"].weight))

    return case(run, torch.randn(4, 16), one=nn.Linear(16, 16), two=nn.Linear(16, 4))


def beam_step():
    """Top-k tokens, nucleus filtering, gathered states."""
    def run(p, states):
        scores, order = p["out"](states).log_softmax(-1).sort(descending=True)
        scores = scores.masked_fill(scores.exp().cumsum(-1) > 0.9, -1e9)
        best, place = scores.flatten(1).topk(3)
        token = order.flatten(1).gather(1, place)
        return torch.take_along_dim(states, (place // 20)[..., None].expand(-1, -1, 16), 1) + p["words"](token), best

    return case(run, torch.randn(2, 3, 16), out=nn.Linear(16, 20), words=nn.Embedding(20, 16))


MODELS = {function.__name__: function for function in (
    lstm_cells, gru_cells, temporal_convolutions, wavenet, u_net, autoencoder, vector_quantizer, generator, discriminator, style_transfer, circular_convolutions, super_resolution, recommender,
    factorization_machine, collaborative_filter, point_net, graph_convolution, graph_attention, spatial_transformer, sine_network, radiance_field, neural_ode, coupling_flow,
    transformer_of_torch, encoder_of_torch, linear_attention, retention, biased_attention, complex_rotary, mixture_of_experts, spline_network, graph_pooling, contrastive, losses,
    angular_margin, random_field, forecast_basis, highway, text_convolutions, capsules, pyramid_pooling, patches_by_unfold, spectral_mixing, gaussian_mixture, actor_critic,
    quantization_aware, beam_step)}
