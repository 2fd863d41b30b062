"""Models at the depth and width that people run, with random weights, for torch_models.py --large. Each is a function of `small`, as
in torch_model_list.py; LARGE names the modes in which it is measured."""
from torch_model_list import _pictures, _timm, _tokens, _transformers


def llama_1b(small):
    """As Llama 3.2 1B: 16 layers, 32 heads that share 8 of keys and values."""
    size = dict(hidden_size=64, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=96) \
        if small else dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                           vocab_size=128256, tie_word_embeddings=True)
    model = _transformers("LlamaForCausalLM", "LlamaConfig", use_cache=False, max_position_embeddings=512, pad_token_id=0, bos_token_id=1,
                          eos_token_id=2, **size)
    return model, _tokens(small, size["vocab_size"], batch=1, length=256, padded=False)


def _bert(small, width, layers):
    width, layers, words = (64, 2, 96) if small else (width, layers, 30522)
    return _transformers("BertModel", "BertConfig", hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // (16 if small else 64),
                         intermediate_size=4 * width, vocab_size=words), _tokens(small, words, batch=1, labels=False)


def bert_large(small):
    return _bert(small, 1024, 24)


def vit_large(small):
    size = dict(img_size=56, embed_dim=64, num_heads=4, depth=2) if small else {}
    return _timm("vit_large_patch16_224", **size), _pictures(small, batch=1)


def efficientnet_b7(small):
    return _timm("efficientnet_b0" if small else "tf_efficientnet_b7"), _pictures(small, 64 if small else 600, batch=1)


def whisper_small(small):
    """Encoder and decoder, 30 seconds of sound and 32 tokens."""
    import torch

    size = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
                decoder_ffn_dim=256, vocab_size=96, max_source_positions=32) if small else \
        dict(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
             decoder_ffn_dim=3072, vocab_size=51865, max_source_positions=1500)
    model = _transformers("WhisperModel", "WhisperConfig", num_mel_bins=80, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                          decoder_start_token_id=1, **size)
    sound = torch.randn(1, 80, 2 * size["max_source_positions"])
    return model, ((sound,), {"decoder_input_ids": torch.randint(3, size["vocab_size"], (1, 8 if small else 32))})


def gpt2_base(small):
    """The 12 layers of GPT-2, two texts of 128 tokens."""
    size = dict(n_embd=64, n_layer=2, n_head=4, vocab_size=96) if small else dict(n_embd=768, n_layer=12, n_head=12, vocab_size=50257)
    model = _transformers("GPT2LMHeadModel", "GPT2Config", n_positions=256, use_cache=False, bos_token_id=1, eos_token_id=2, **size)
    return model, _tokens(small, size["vocab_size"], padded=False)


LARGE = {llama_1b: ("infer_bf16",), bert_large: ("infer_f32", "infer_bf16"), vit_large: ("infer_f32", "infer_bf16"), efficientnet_b7: ("infer_f32",),
         whisper_small: ("infer_f32",), gpt2_base: ("train_f32", "train_autocast")}
LARGE = {function.__name__: (function, modes) for function, modes in LARGE.items()}
