"""Models of the package transformers for torch_coverage.py: small configurations with random weights.

MODELS: name -> a function that returns (module, (args, kwargs)). An entry `labels` is passed only in training.
"""
import functools

import torch

WIDTH, LAYERS, HEADS, WORDS, LENGTH = 32, 2, 4, 96, 16
# The settings that most configurations have; those with other names override them below.
ABSENT = object()  # as the value of a setting: the configuration does not have it
USUAL = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=2 * WIDTH, vocab_size=WORDS,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def made(kind, config, **settings):
    import transformers

    transformers.logging.set_verbosity_error()
    given = {name: value for name, value in settings.items() if value is not ABSENT}
    return getattr(transformers, kind)(getattr(transformers, config)(**given))


def tokens(length=LENGTH, labels=True, padded=True, **more):
    ids = torch.randint(3, WORDS, (2, length))
    inputs = dict(input_ids=ids, **more)
    if padded:
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][-1, -length // 4:] = 0
    return (), dict(inputs, labels=ids) if labels else inputs


def text(kind, config, labels=True, length=LENGTH, padded=True, **settings):
    return made(kind, config, **{**USUAL, **settings}), tokens(length, labels, padded)


def decoder(name, **settings):
    return text(f"{name}ForCausalLM", f"{name}Config", **{"num_key_value_heads": 2, "use_cache": False, "head_dim": WIDTH // HEADS, **settings})


def plain_decoder(kind, config, **settings):
    """A decoder whose configuration knows none of the settings of USUAL, or not all."""
    return made(kind, config, **{"vocab_size": WORDS, "use_cache": False, "bos_token_id": 1, "eos_token_id": 2, **settings}), tokens(padded=False)


def translator(kind, config, **settings):
    """Encoder and decoder of text."""
    usual = dict(vocab_size=WORDS, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
                 decoder_attention_heads=HEADS, encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH, max_position_embeddings=64,
                 pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None, use_cache=False)
    ids = torch.randint(3, WORDS, (2, LENGTH))
    return made(kind, config, **{**usual, **settings}), ((), dict(input_ids=ids, decoder_input_ids=ids.clone()))


def t5(kind, config, **settings):
    return translator(kind, config, **{"d_kv": 8, "d_ff": 64, "num_layers": LAYERS, "num_heads": HEADS, "num_decoder_layers": LAYERS, **settings})


def pictures(kind, config, side=32, **settings):
    usual = {key: value for key, value in USUAL.items() if key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
    return made(kind, config, **{**usual, "image_size": side, "patch_size": 8, **settings}), ((torch.randn(2, 3, side, side),), {})


def stages(kind, config, side=64, **settings):
    """A model of pictures with its own settings."""
    return made(kind, config, **settings), ((torch.randn(2, 3, side, side),), {})


def video(kind, config, **settings):
    module, _ = pictures(kind, config, num_frames=2, **settings)
    return module, ((torch.randn(2, 2, 3, 32, 32),), {})


SPEECH = dict(conv_dim=(16, 16, 16), conv_stride=(5, 4, 2), conv_kernel=(10, 4, 2), num_feat_extract_layers=3, num_conv_pos_embeddings=8,
              num_conv_pos_embedding_groups=2, mask_time_prob=0.0, layerdrop=0.0)


def speech(kind, config, **settings):
    return made(kind, config, **{**USUAL, **SPEECH, **settings}), ((torch.randn(2, 1600),), {})


def series(kind, config, **settings):
    usual = dict(prediction_length=4, context_length=12, lags_sequence=[1, 2], d_model=16, encoder_layers=LAYERS, decoder_layers=LAYERS,
                 encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_time_features=1)
    inputs = dict(past_values=torch.randn(2, 14), past_time_features=torch.randn(2, 14, 1), past_observed_mask=torch.ones(2, 14),
                  future_values=torch.randn(2, 4), future_time_features=torch.randn(2, 4, 1))
    return made(kind, config, **{**usual, **settings}), ((), inputs)


def patched_series(kind, config, **settings):
    return made(kind, config, context_length=32, num_input_channels=3, patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=LAYERS, num_layers=LAYERS,
                num_attention_heads=2, ffn_dim=32, **settings), ((torch.randn(2, 32, 3),), {})


def two_towers(kind, config, **settings):
    words = {key: value for key, value in USUAL.items()}
    seen = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=2 * WIDTH, image_size=32, patch_size=8)
    module = made(kind, config, text_config=words, vision_config=seen, projection_dim=16, **settings)
    inputs = tokens(labels=False)[1]
    return module, ((), dict(inputs, pixel_values=torch.randn(2, 3, 32, 32)))


P = functools.partial
ENCODERS = """Albert Roberta Electra MPNet RoFormer RemBert XLMRoberta Camembert Ernie MegatronBert Nystromformer ConvBert DebertaV2 Deberta
SqueezeBert RobertaPreLayerNorm Data2VecText Yoso IBert Mra XLMRobertaXL FNet ModernBert Esm""".split()
DECODERS = """Olmo Olmo2 Phi Phi3 StableLm Starcoder2 Qwen3 Gemma Granite Cohere Cohere2 Glm Glm4 Nemotron Persimmon SmolLM3 Helium Arcee Exaone4
DiffLlama Ernie4_5 BitNet SeedOss Apertus Ministral""".split()
EXPERTS = "Qwen2Moe Qwen3Moe Olmoe GraniteMoe Phimoe Dots1 GptOss MiniMax".split()
OWN = {
    "Albert": dict(embedding_size=16), "Electra": dict(embedding_size=16), "Deberta": dict(pos_att_type=["c2p", "p2c"], relative_attention=True),
    "DebertaV2": dict(pos_att_type=["c2p", "p2c"], relative_attention=True), "SqueezeBert": dict(embedding_size=WIDTH), "RemBert": dict(input_embedding_size=16, output_embedding_size=16),
    "ConvBert": dict(embedding_size=WIDTH), "Esm": dict(mask_token_id=3, position_embedding_type="rotary"), "ModernBert": dict(local_attention=8, sparse_prediction=False),
    "Cohere2": dict(sliding_window=8), "Exaone4": dict(sliding_window=8), "Nystromformer": dict(segment_means_seq_len=4, num_landmarks=4),
}
MOE = dict(num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16, decoder_sparse_step=1,
           n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1)

MODELS = {}
for _name in ENCODERS:
    MODELS[_name.lower()] = P(text, f"{_name}ForMaskedLM", f"{_name}Config", padded=_name != "FNet", **{"layer_norm_eps": 1e-5, **OWN.get(_name, {})})
for _name in DECODERS:
    MODELS[_name.lower()] = P(decoder, _name, **OWN.get(_name, {}))
for _name in EXPERTS:
    MODELS[_name.lower()] = P(decoder, _name, **MOE)
MODELS.update({
    "gemma3": P(text, "Gemma3ForCausalLM", "Gemma3TextConfig", num_key_value_heads=2, use_cache=False, head_dim=8, sliding_window=8),
    "deepseek_v3": P(decoder, "DeepseekV3", **{**MOE, "n_group": 2, "topk_group": 1, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
                                               "v_head_dim": 8, "num_key_value_heads": HEADS, "head_dim": 8}),
    "distilbert": P(text, "DistilBertForMaskedLM", "DistilBertConfig", dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=64),
    "mobilebert": P(text, "MobileBertForMaskedLM", "MobileBertConfig", embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16),
    "xlm": P(text, "XLMWithLMHeadModel", "XLMConfig", emb_dim=WIDTH, n_layers=LAYERS, n_heads=HEADS),
    "xlnet": P(text, "XLNetLMHeadModel", "XLNetConfig", labels=False, max_position_embeddings=ABSENT, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=64),
    "funnel": P(text, "FunnelForMaskedLM", "FunnelConfig", num_hidden_layers=ABSENT, d_model=WIDTH, block_sizes=[1, 1], num_decoder_layers=1, n_head=HEADS, d_head=8, d_inner=64),
    "canine": P(text, "CanineModel", "CanineConfig", labels=False, length=32, local_transformer_stride=16, num_hash_buckets=64),
    "longformer": P(text, "LongformerForMaskedLM", "LongformerConfig", attention_window=8),
    "bigbird": P(text, "BigBirdForMaskedLM", "BigBirdConfig", attention_type="original_full"),
    # AOTAutograd draws its dropout in another order than eager mode.
    "lilt": lambda: (made("LiltModel", "LiltConfig", **{**USUAL, "hidden_size": 48}, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, channel_shrink_ratio=2, max_2d_position_embeddings=64), tokens(labels=False, bbox=torch.randint(0, 20, (2, LENGTH, 4)).sort(-1)[0])),
    "opt": P(plain_decoder, "OPTForCausalLM", "OPTConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=64, word_embed_proj_dim=WIDTH),
    "bloom": P(plain_decoder, "BloomForCausalLM", "BloomConfig", hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS),
    "falcon": P(plain_decoder, "FalconForCausalLM", "FalconConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS),
    "mpt": P(plain_decoder, "MptForCausalLM", "MptConfig", d_model=WIDTH, n_layers=LAYERS, n_heads=HEADS, max_seq_len=64),
    "gptj": P(plain_decoder, "GPTJForCausalLM", "GPTJConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, rotary_dim=4),
    "codegen": P(plain_decoder, "CodeGenForCausalLM", "CodeGenConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, rotary_dim=4),
    "gpt_neo": P(plain_decoder, "GPTNeoForCausalLM", "GPTNeoConfig", hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, attention_types=[[["global", "local"], 1]], window_size=8),
    "gpt_neox": P(plain_decoder, "GPTNeoXForCausalLM", "GPTNeoXConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=64),
    "gpt_bigcode": P(plain_decoder, "GPTBigCodeForCausalLM", "GPTBigCodeConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS),
    "ctrl": P(plain_decoder, "CTRLLMHeadModel", "CTRLConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, dff=64),
    "biogpt": P(plain_decoder, "BioGptForCausalLM", "BioGptConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=64),
    "xglm": P(plain_decoder, "XGLMForCausalLM", "XGLMConfig", d_model=WIDTH, num_layers=LAYERS, attention_heads=HEADS, ffn_dim=64),
    "falcon_mamba": P(plain_decoder, "FalconMambaForCausalLM", "FalconMambaConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, state_size=8),
    "mamba2": P(plain_decoder, "Mamba2ForCausalLM", "Mamba2Config", hidden_size=WIDTH, num_hidden_layers=LAYERS, state_size=8, num_heads=8, head_dim=8, n_groups=1, chunk_size=8),
    "rwkv": P(plain_decoder, "RwkvForCausalLM", "RwkvConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, attention_hidden_size=WIDTH),
    "recurrent_gemma": P(decoder, "RecurrentGemma", lru_width=WIDTH, attention_window_size=8, block_types=["recurrent", "attention"]),
    "lfm2": P(decoder, "Lfm2", layer_types=["conv", "full_attention"]),
    "bart": P(translator, "BartForConditionalGeneration", "BartConfig"),
    "mbart": P(translator, "MBartForConditionalGeneration", "MBartConfig"),
    "pegasus": P(translator, "PegasusForConditionalGeneration", "PegasusConfig"),
    "marian": P(translator, "MarianMTModel", "MarianConfig"),
    "m2m100": P(translator, "M2M100ForConditionalGeneration", "M2M100Config"),
    "blenderbot": P(translator, "BlenderbotForConditionalGeneration", "BlenderbotConfig"),
    "led": P(translator, "LEDForConditionalGeneration", "LEDConfig", attention_window=8, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    "prophetnet": P(translator, "ProphetNetForConditionalGeneration", "ProphetNetConfig", encoder_layers=ABSENT, decoder_layers=ABSENT, d_model=ABSENT, hidden_size=WIDTH, num_encoder_layers=LAYERS, num_decoder_layers=LAYERS,
                    num_encoder_attention_heads=HEADS, num_decoder_attention_heads=HEADS),
    "t5": P(t5, "T5ForConditionalGeneration", "T5Config"),
    "long_t5": P(t5, "LongT5ForConditionalGeneration", "LongT5Config", local_radius=4),
    "switch_transformers": P(t5, "SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", num_experts=4, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    "hf_vit": P(pictures, "ViTForImageClassification", "ViTConfig"),
    "deit": P(pictures, "DeiTForImageClassification", "DeiTConfig"),
    "beit": P(pictures, "BeitForImageClassification", "BeitConfig", use_relative_position_bias=True),
    "dinov2": P(pictures, "Dinov2ForImageClassification", "Dinov2Config"),
    "vit_msn": P(pictures, "ViTMSNForImageClassification", "ViTMSNConfig"),
    "yolos": P(pictures, "YolosForObjectDetection", "YolosConfig", num_detection_tokens=4, image_size=[32, 32]),
    "hf_hiera": P(stages, "HieraForImageClassification", "HieraConfig", embed_dim=16, image_size=[64, 64], depths=[1, 1], num_heads=[1, 2], query_stride=[2, 2], num_query_pool=1, masked_unit_size=[4, 4]),
    "segformer": P(stages, "SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16),
    "pvt": P(stages, "PvtForImageClassification", "PvtConfig", image_size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2]),
    "levit": P(stages, "LevitForImageClassification", "LevitConfig", image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[1, 2, 2], depths=[1, 1, 1], key_dim=[8, 8, 8]),
    "poolformer": P(stages, "PoolFormerForImageClassification", "PoolFormerConfig", hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]),
    "bit": P(stages, "BitForImageClassification", "BitConfig", embedding_size=8, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_groups=4),
    "hf_focalnet": P(stages, "FocalNetForImageClassification", "FocalNetConfig", image_size=64, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 1]),
    "swinv2": P(stages, "Swinv2ForImageClassification", "Swinv2Config", image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4),
    "swin2sr": P(stages, "Swin2SRForImageSuperResolution", "Swin2SRConfig", side=16, image_size=16, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "ijepa": P(pictures, "IJepaForImageClassification", "IJepaConfig"),
    "timesformer": P(video, "TimesformerForVideoClassification", "TimesformerConfig"),
    "vivit": P(video, "VivitForVideoClassification", "VivitConfig", tubelet_size=[2, 8, 8]),
    "wav2vec2": P(speech, "Wav2Vec2ForCTC", "Wav2Vec2Config"),
    "hubert": P(speech, "HubertModel", "HubertConfig"),
    "wavlm": P(speech, "WavLMModel", "WavLMConfig"),
    "sew": P(speech, "SEWModel", "SEWConfig", squeeze_factor=2),
    "unispeech_sat": P(speech, "UniSpeechSatModel", "UniSpeechSatConfig"),
    "data2vec_audio": P(speech, "Data2VecAudioModel", "Data2VecAudioConfig", conv_pos_kernel_size=3),
    "spectrogram_transformer": lambda: (made("ASTForAudioClassification", "ASTConfig", **USUAL, max_length=32, num_mel_bins=16, patch_size=8,
        frequency_stride=8, time_stride=8), ((torch.randn(2, 32, 16),), {})),
    "encodec": lambda: (made("EncodecModel", "EncodecConfig", num_filters=4, num_residual_layers=1, upsampling_ratios=[4, 2], hidden_size=16,
        codebook_dim=16, codebook_size=16, num_lstm_layers=1), ((torch.randn(2, 1, 320),), {})),
    "time_series_transformer": P(series, "TimeSeriesTransformerModel", "TimeSeriesTransformerConfig"),
    # Its top k is not sorted. Their order, which torch leaves open, decides which numbers of dropout an element gets.
    "informer": P(series, "InformerModel", "InformerConfig", dropout=0.0, attention_dropout=0.0, activation_dropout=0.0),
    "autoformer": P(series, "AutoformerModel", "AutoformerConfig", moving_average=5),
    "patch_tst": P(patched_series, "PatchTSTModel", "PatchTSTConfig"),
    "patch_ts_mixer": P(patched_series, "PatchTSMixerModel", "PatchTSMixerConfig"),
    "siglip": P(two_towers, "SiglipModel", "SiglipConfig"),
    "chinese_clip": P(two_towers, "ChineseCLIPModel", "ChineseCLIPConfig"),
    "vilt": lambda: (made("ViltModel", "ViltConfig", **USUAL, image_size=32, patch_size=8), ((), dict(tokens(labels=False)[1], pixel_values=torch.randn(2, 3, 32, 32)))),
    "decision_transformer": lambda: (made("DecisionTransformerModel", "DecisionTransformerConfig", state_dim=5, act_dim=3, hidden_size=WIDTH, max_ep_len=32, n_layer=LAYERS, n_head=HEADS),
                                     ((), dict(states=torch.randn(2, 6, 5), actions=torch.randn(2, 6, 3), rewards=torch.randn(2, 6, 1),
                                         returns_to_go=torch.randn(2, 6, 1), timesteps=torch.arange(6).repeat(2, 1), attention_mask=torch.ones(2, 6)))),
})
