"""Widely used models with random weights and two layers or blocks, and parts of them, for torch_models.py.

Each is a function of `small`: small sizes to inspect the graphs (a call takes milliseconds), or the models' usual widths. It
returns the module and its inputs, (args, kwargs); an entry `labels` is passed only in training. Nothing is downloaded.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def _transformers(kind, config, **settings):
    import transformers

    transformers.logging.set_verbosity_error()
    return getattr(transformers, kind)(getattr(transformers, config)(**settings))


def _diffusers(kind, **settings):
    import diffusers

    return getattr(diffusers, kind)(**settings)


def _timm(name, **settings):
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **settings)


def _tokens(small, vocabulary, batch=2, length=128, padded=True, labels=True):
    """Token ids [batch, length]. If `padded`, the last quarter of the last text is padding."""
    length = 16 if small else length
    ids = torch.randint(3, vocabulary, (batch, length))
    inputs = {"input_ids": ids}
    if padded:
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][-1, -length // 4:] = 0
    return (), dict(inputs, labels=ids) if labels else inputs


def _pictures(small, side=224, batch=2):
    side = side // 4 if small else side
    return (torch.randn(batch, 3, side, side),), {}


def _widths(small, width=768):
    width = 64 if small else width
    return {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": width // (16 if small else 64),
            "intermediate_size": 4 * width, "vocab_size": 96 if small else 2048}


def bert(small, attention="sdpa"):
    w = _widths(small)
    return _transformers("BertForMaskedLM", "BertConfig", attn_implementation=attention, **w), _tokens(small, w["vocab_size"])


def bert_eager(small):
    return bert(small, "eager")


def gpt2(small):
    w = _widths(small)
    model = _transformers("GPT2LMHeadModel", "GPT2Config", n_embd=w["hidden_size"], n_layer=2, n_head=w["num_attention_heads"],
                          vocab_size=w["vocab_size"], n_positions=256, use_cache=False, bos_token_id=1, eos_token_id=2)
    return model, _tokens(small, w["vocab_size"])


def _decoder(small, name, **settings):
    w = _widths(small, 512)
    w["intermediate_size"] = w["hidden_size"] * 11 // 4 // 16 * 16
    model = _transformers(f"{name}ForCausalLM", f"{name}Config", num_key_value_heads=w["num_attention_heads"] // 2, use_cache=False,
                          max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2, **w, **settings)
    return model, _tokens(small, w["vocab_size"])


def llama(small):
    return _decoder(small, "Llama")


def mistral(small):
    return _decoder(small, "Mistral", sliding_window=8 if small else 64)


def qwen2(small):
    return _decoder(small, "Qwen2")


def gemma2(small):
    return _decoder(small, "Gemma2", head_dim=16 if small else 64, sliding_window=8 if small else 64)


def mixtral(small):
    return _decoder(small, "Mixtral", num_local_experts=4)


def t5_encoder(small):
    w = _widths(small, 512)
    model = _transformers("T5EncoderModel", "T5Config", d_model=w["hidden_size"], d_kv=16 if small else 64, d_ff=w["intermediate_size"],
                          num_layers=2, num_heads=w["num_attention_heads"], vocab_size=w["vocab_size"])
    return model, _tokens(small, w["vocab_size"], labels=False)


def vit(small):
    size = dict(img_size=56, embed_dim=64, num_heads=4) if small else dict(img_size=224, embed_dim=768, num_heads=12)
    return _timm("vit_base_patch16_224", depth=2, **size), _pictures(small, batch=1)


def swin(small):
    size = dict(img_size=56, embed_dim=32, num_heads=(2, 4)) if small else dict(img_size=224, embed_dim=96, num_heads=(3, 6))
    return _timm("swin_tiny_patch4_window7_224", depths=(2, 2), **size), _pictures(small, batch=1)


def convnext(small):
    dims = (16, 32, 64, 96) if small else (96, 192, 384, 768)
    return _timm("convnext_tiny", depths=(1, 1, 1, 1), dims=dims), _pictures(small, batch=1)


def resnet50(small):
    return _timm("resnet50", layers=(1, 1, 1, 1)), _pictures(small, batch=2)


def efficientnet_b0(small):
    return _timm("efficientnet_b0"), _pictures(small, 160)


def mobilenetv3(small):
    return _timm("mobilenetv3_small_100"), _pictures(small)


def dit(small):
    size = dict(num_attention_heads=4, attention_head_dim=16) if small else dict(num_attention_heads=8, attention_head_dim=64)
    side = 8 if small else 32
    model = _diffusers("DiTTransformer2DModel", num_layers=2, sample_size=side, patch_size=2, in_channels=4, num_embeds_ada_norm=1000, **size)
    return model, ((torch.randn(2, 4, side, side),), {"timestep": torch.tensor([3, 500]), "class_labels": torch.tensor([1, 2])})


class ModulatedBlock(nn.Module):
    """A transformer block whose norms are shifted, scaled and gated by a condition (adaLN-zero)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.mlp_norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv, self.out, self.condition = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 6 * width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, condition):
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = self.condition(F.silu(condition))[:, None].chunk(6, -1)
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = (split(t) for t in self.qkv(self.attention_norm(x) * (1 + scale) + shift).chunk(3, -1))
        x = x + gate * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        hidden = F.gelu(self.grow(self.mlp_norm(x) * (1 + mlp_scale) + mlp_shift), approximate="tanh")
        return x + mlp_gate * self.shrink(hidden)


def dit_block(small):
    width = 64 if small else 768
    return ModulatedBlock(width, width // (16 if small else 64)), ((torch.randn(2, 16 if small else 256, width), torch.randn(2, width)), {})


class GatedBlock(nn.Module):
    """torch.nn.RMSNorm and a gated MLP."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        normed = self.norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


def rmsnorm_block(small):
    width = 64 if small else 768
    return GatedBlock(width, width * 8 // 3), ((torch.randn(2, 16 if small else 256, width),), {})


def unet(small):
    side, channels = (16, (32, 64)) if small else (32, (128, 256))
    model = _diffusers("UNet2DConditionModel", sample_size=side, block_out_channels=channels, layers_per_block=1,
                       down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                       norm_num_groups=8, attention_head_dim=8, cross_attention_dim=channels[0])
    return model, ((torch.randn(2, 4, side, side), torch.tensor([3, 500]), torch.randn(2, 16, channels[0])), {})


def mamba(small):
    model = _transformers("MambaForCausalLM", "MambaConfig", hidden_size=64 if small else 512, num_hidden_layers=2, state_size=16,
                          vocab_size=96 if small else 2048, use_cache=False)
    return model, _tokens(small, 96, length=32, padded=False)


def clip(small):
    text = dict(_widths(small, 512), max_position_embeddings=64, eos_token_id=2)
    vision = dict(_widths(small, 512), image_size=56 if small else 224, patch_size=14 if small else 16)
    model = _transformers("CLIPModel", "CLIPConfig", text_config=text, vision_config=vision, projection_dim=64)
    inputs = _tokens(small, text["vocab_size"], length=64, labels=False)[1]
    return model, ((), dict(inputs, pixel_values=_pictures(small)[0][0], labels=True))


def whisper_encoder(small):
    width = 64 if small else 384
    model = _transformers("WhisperModel", "WhisperConfig", d_model=width, encoder_layers=2, decoder_layers=1, encoder_attention_heads=width // 16,
                          decoder_attention_heads=width // 16, encoder_ffn_dim=4 * width, vocab_size=96, num_mel_bins=80,
                          max_source_positions=32 if small else 500, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return model.get_encoder(), ((torch.randn(1, 80, 64 if small else 1000),), {})


# ---- parts without products: norms, elementwise ops, softmax, at the sizes in models

class Part(nn.Module):
    """A function of tensors and of parameters with these shapes, written as in models."""

    def __init__(self, function, *shapes):
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(torch.randn(shape) for shape in shapes)

    def forward(self, *inputs):
        return self.function(*inputs, *self.weights)


def _part(function, inputs, *parameters, constants=()):
    """Inputs need gradients, as activations do. They are leaves, so a training step does only the part's own work. Constants
    (shapes of further inputs) need no gradients."""
    part = Part(function, *parameters)
    part.inputs = len(inputs)
    return part, (tuple(torch.randn(shape) for shape in (*inputs, *constants)), {})


def _rows(small):
    return (2, 16, 64) if small else (8, 256, 768)


def add_norm(small):
    rows = _rows(small)
    return _part(lambda x, r, w, b: F.layer_norm(x + r, rows[-1:], w, b), [rows, rows], rows[-1:], rows[-1:])


def written_rms_norm(small):
    """As the modules of transformers write it."""
    rows = _rows(small)
    return _part(lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), [rows], rows[-1:])


def modulated_norm(small):
    rows = _rows(small)
    condition = (rows[0], 1, rows[2])
    return _part(lambda x, shift, scale: F.layer_norm(x, rows[-1:]) * (1 + scale) + shift, [rows, condition, condition])


def bias_gelu(small):
    rows = (*_rows(small)[:2], 4 * _rows(small)[2])
    return _part(lambda x, b: F.gelu(x + b), [rows], rows[-1:])


def gated_silu(small):
    rows = (*_rows(small)[:2], 2 * _rows(small)[2])
    return _part(lambda gate, up: F.silu(gate) * up, [rows, rows])


def masked_softmax(small):
    scores = (2, 4, 16, 16) if small else (2, 12, 256, 256)
    return _part(lambda s, mask: F.softmax(s * 0.125 + mask, -1), [scores], constants=[(scores[0], 1, 1, scores[3])])


def group_norm_silu(small):
    shape = (2, 32, 8, 8) if small else (2, 256, 64, 64)
    return _part(lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)), [shape], shape[1:2], shape[1:2])


def rotary(small):
    heads = (2, 4, 16, 16) if small else (2, 12, 256, 64)

    def turned(x, cos, sin):
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat((-right, left), -1) * sin

    return _part(turned, [heads], constants=[heads[2:], heads[2:]])


PARTS = {function.__name__: function for function in (
    add_norm, written_rms_norm, modulated_norm, bias_gelu, gated_silu, masked_softmax, group_norm_silu, rotary)}
MODELS = {function.__name__: function for function in (
    bert, bert_eager, gpt2, llama, mistral, qwen2, gemma2, mixtral, t5_encoder, vit, swin, convnext, resnet50, efficientnet_b0, mobilenetv3,
    dit, dit_block, rmsnorm_block, unet, mamba, clip, whisper_encoder)}


def model_of(function, small, training):
    """(module, args, kwargs) of a model in training or for inference, with the same numbers each time."""
    torch.manual_seed(0)
    module, (args, kwargs) = function(small)
    if training and isinstance(module, Part):
        args = tuple(value.requires_grad_(position < module.inputs) for position, value in enumerate(args))
    if "labels" in kwargs:
        labels = kwargs.pop("labels")
        if training:
            kwargs.update({"return_loss": True} if labels is True else {"labels": labels})
    return module.train(training), args, kwargs


def first_tensor(result):
    """The tensor by which inference is compared."""
    if isinstance(result, torch.Tensor):
        return result
    found = result.values() if hasattr(result, "values") else result
    return next(t for t in map(first_tensor, found) if t is not None and t.is_floating_point())


def loss_of(result):
    """A scalar for the backward pass: the model's own loss if it has one."""
    own = getattr(result, "loss", None)
    if own is not None:
        return own
    made = first_tensor(result)
    return made.float().square().mean()
