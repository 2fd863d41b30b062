#!/usr/bin/env python3
"""Checks models of timm and transformers, exported by torch.onnx, in lamina.from_onnx against PyTorch.

    check_exports.py [MODEL]... [--json FILE] [--slack FACTOR]

MODEL: a name of the lists below; default: all 60. The weights are random, and models of transformers are small configurations.
One row per model:
  eager, lamina  the largest error of the first output against PyTorch in float64, relative to the largest element
  verdict        right: lamina's error is at most FACTOR (5) times that of PyTorch in float32, of which at least one rounding of
                 float32 is assumed; wrong; or the error of PyTorch (export, float64) or of lamina
The exit code is 1 unless all are right.

Needs the packages lamina, torch, torchvision, timm, transformers, onnx and onnxscript.
"""
import argparse
import io
import json
import sys
import time
import warnings

# timm's name, and pixels along a side
IMAGES = dict(entry.split(":") for entry in """convnext_atto:64 deit_tiny_patch16_224:224 densenet121:64 dla34:64 edgenext_xx_small:64
efficientformerv2_s0:224 efficientnet_b0:64 fastvit_t8:64 ghostnet_100:64 hrnet_w18_small:64 inception_v3:128 mixer_s32_224:224
mnasnet_100:64 mobilenetv2_100:64 mobilenetv3_large_100:64 mobilevit_xxs:64 regnety_002:64 repvgg_a0:64 resnet18:64 resnet50:64
resnetv2_50:64 resnext50_32x4d:64 swin_tiny_patch4_window7_224:224 tf_efficientnetv2_b0:64 vgg11:64 vit_tiny_patch16_224:224
xception41:96 cait_xxs24_224:224 poolformer_s12:64 seresnet50:64""".split())
TEXTS = """albert bert bert-generation big_bird bloom camembert convbert data2vec-text deberta-v2 distilbert electra ernie esm gemma gpt2
gpt_neo gpt_neox gptj layoutlm llama mistral mobilebert mpnet nystromformer opt phi qwen2 roberta roformer xlm-roberta""".split()
SMALL = {"hidden_size": 64, "n_embd": 64, "d_model": 64, "dim": 64, "embedding_size": 64, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2,
         "num_layers": 2, "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4, "attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 16, "intermediate_size": 128, "hidden_dim": 128, "ffn_dim": 128, "vocab_size": 211, "max_position_embeddings": 128,
         "n_positions": 128, "rotary_dim": 16, "attention_types": [[["global", "local"], 1]], "word_embed_proj_dim": 64,
         "intra_bottleneck_size": 32, "true_hidden_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "attention_type": "original_full",
         "num_landmarks": 32, "segment_means_seq_len": 32}


def image_model(name, size):
    import timm
    import torch

    model = timm.create_model(name, pretrained=False).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # a new model's statistics do nothing
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
        if isinstance(module, torch.nn.Linear) and not module.weight.any():  # of a classifier: all results would be 0
            torch.nn.init.normal_(module.weight, std=0.1)
    return model, torch.randn(1, 3, size, size)


def text_model(kind):
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(kind)
    for key, value in SMALL.items():
        if hasattr(config, key):
            setattr(config, key, value)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(input_ids=ids, return_dict=False)[0]

    return First(), torch.randint(3, 200, (1, 32))


def first_of(outputs):
    return outputs[0] if isinstance(outputs, (tuple, list)) else outputs


def checked(name, slack):
    """Returns the verdict, and the errors of eager and lamina."""
    import lamina
    import torch

    torch.manual_seed(0)
    try:
        model, given = image_model(name, int(IMAGES[name])) if name in IMAGES else text_model(name)
        file = io.BytesIO()
        torch.onnx.export(model, (given,), dynamo=True, external_data=False, verbose=False).save(file)
        with torch.no_grad():
            eager = first_of(model(given)).double()
            exact = first_of(model.double()(given.double() if given.is_floating_point() else given))
    except Exception as error:  # the exporter's errors have no common base
        return f"PyTorch: {type(error).__name__}: {str(error).splitlines()[0][:100]}", None, None
    try:
        run = lamina.from_onnx(file.getvalue())
        got = torch.as_tensor(first_of(run(*[given.numpy()]))).double()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:300]}", None, None
    largest = float(exact.abs().max())
    errors = [float((result - exact).abs().max()) / largest for result in (eager, got)]
    return "right" if errors[1] <= slack * max(errors[0], 2.0**-24) else "wrong", *errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--slack", type=float, default=5.0, metavar="FACTOR")
    chosen = parser.parse_args()
    known = [*TEXTS, *IMAGES]
    unknown = [name for name in chosen.models if name not in known]
    if unknown:
        sys.exit(f"no model {', '.join(unknown)}; allowed are {', '.join(known)}")
    warnings.filterwarnings("ignore")
    rows = {}
    for name in chosen.models or known:
        begin = time.perf_counter()
        verdict, eager, got = checked(name, chosen.slack)
        rows[name] = {"verdict": verdict, "eager": eager, "lamina": got}
        errors = f"{eager:9.1e} {got:9.1e}" if eager is not None else " " * 19
        print(f"{name:30}{errors}  {verdict}  ({time.perf_counter() - begin:.0f} s)", flush=True)
    right = sum(row["verdict"] == "right" for row in rows.values())
    print(f"{right} of {len(rows)} right")
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    sys.exit(right != len(rows))


if __name__ == "__main__":
    main()
