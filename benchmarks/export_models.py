#!/usr/bin/env python3
"""Writes image models of the package timm as ONNX files for onnx_models.py, as torch.onnx exports them, with random weights.

    export_models.py FOLDER [MODEL[:SIZE]]...
    onnx_models.py FOLDER/*.onnx

MODEL: timm's name; SIZE: pixels along a side of the input, 224 by default; the batch is 1. Without MODEL: the list below, one
of each family of convolutional networks and vision transformers. Statistics of BatchNorm are random too, because those of a new
model would make it do nothing. A file that is there already is kept.

Needs the packages torch, torchvision, timm and onnxscript.
"""
import argparse
import pathlib
import sys
import warnings

MODELS = """convnext_tiny deit_tiny_patch16_224 densenet121 dla34 edgenext_small efficientformerv2_s0 efficientnet_b0 fastvit_t8
ghostnet_100 hrnet_w18_small inception_v3:299 mixer_b16_224 mnasnet_100 mobilenetv2_100 mobilenetv3_large_100 mobilevit_s
regnety_004 repvgg_a0 resnet18 resnet50 resnetv2_50 resnext50_32x4d swin_tiny_patch4_window7_224 tf_efficientnetv2_b0 vgg16
vit_base_patch16_224 xception41:299""".split()


def new_model(name):
    import timm
    import torch

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    return model


def export(name, size, path):
    import torch

    unfinished = path.with_suffix(".part")
    torch.onnx.export(new_model(name), (torch.randn(1, 3, size, size),), str(unfinished), dynamo=True, external_data=False, verbose=False)
    unfinished.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", metavar="MODEL[:SIZE]")
    chosen = parser.parse_args()
    sizes = {name: size or "224" for name, _, size in (model.partition(":") for model in chosen.models or MODELS)}
    for name, size in sizes.items():
        if not size.isdecimal() or int(size) == 0:
            sys.exit(f"{name}:{size}: the size is no positive number of pixels")
    try:
        import timm
    except ImportError as error:
        sys.exit(f"export_models.py: {error}")
    unknown = [name for name in sizes if not timm.is_model(name)]
    if unknown:
        sys.exit(f"timm {timm.__version__} has no model {', '.join(unknown)}")
    warnings.filterwarnings("ignore")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        path = chosen.folder / f"{name}.onnx"
        if not path.exists():
            export(name, int(size), path)
        print(path, flush=True)


if __name__ == "__main__":
    main()
