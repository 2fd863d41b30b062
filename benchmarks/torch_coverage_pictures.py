"""Models of timm and torchvision for torch_coverage.py: small pictures, random weights, the smallest of each family.

MODELS: name -> a function that returns (module, (args, kwargs)).
"""
import functools

import torch


def of_timm(name, side, **settings):
    import timm

    module = timm.create_model(name, pretrained=False, num_classes=10, **settings)
    heads = module.get_classifier()  # two of models that are distilled
    for head in heads if isinstance(heads, tuple) else (heads,):
        for parameter in head.parameters():  # some are zero
            torch.nn.init.normal_(parameter, std=0.05)
    return module, ((torch.randn(2, 3, side, side),), {})


def of_torchvision(name, side, **settings):
    import torchvision

    return getattr(torchvision.models, name)(weights=None, num_classes=10, **settings), ((torch.randn(2, 3, side, side),), {})


def segmented(name, side=64):
    import torchvision

    module = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=4)
    return module, ((torch.randn(2, 3, side, side),), {})


def filmed(name, **settings):
    import torchvision

    return getattr(torchvision.models.video, name)(num_classes=10, **settings), ((torch.randn(1, 3, 8, 32, 32),), {})


P = functools.partial
# name -> the side of the pictures; those with patches of a fixed number are told their size
TIMM = {"edgenext_xx_small": 64, "ghostnet_050": 64, "hgnetv2_b0": 64, "inception_next_atto": 64, "mambaout_femto": 64, "mobilevit_xxs": 64,
        "mobilevitv2_050": 64, "poolformerv2_s12": 64, "repvit_m0_9": 64, "repghostnet_050": 64, "res2net50_14w_8s": 64, "resnest14d": 64, "rexnet_100": 64,
        "seresnext26d_32x4d": 64, "skresnet18": 64, "starnet_s1": 64, "lcnet_050": 64, "fbnetv3_b": 64, "tf_efficientnetv2_b0": 64,
        "regnety_002": 64, "nf_resnet26": 64, "dla34": 64, "cspresnet50": 64, "vovnet39a": 64, "hrnet_w18_small": 64, "selecsls42": 64,
        "xception41": 64, "convnextv2_atto": 64, "fasternet_t0": 64, "shvit_s1": 64, "gernet_s": 64, "halonet26t": 256, "lambda_resnet26t": 64,
        "bat_resnext26ts": 256, "resnetv2_18": 64, "mixnet_s": 64, "tinynet_e": 64}
SIZED = {"cait_xxs24_224": dict(depth=2), "deit3_small_patch16_224": dict(depth=2), "mixer_s16_224": {}, "gmlp_s16_224": {},
         "resmlp_12_224": {}, "xcit_nano_12_p16_224": dict(depth=2), "pvt_v2_b0": None, "twins_svt_small": None, "visformer_tiny": None,
         "coat_lite_tiny": None, "crossvit_tiny_240": None, "tnt_s_legacy_patch16_224": dict(depth=2), "beitv2_base_patch16_224": dict(depth=2, embed_dim=96, num_heads=4),
         "convmixer_768_32": {}, "eva02_tiny_patch14_224": dict(depth=2), "vit_relpos_small_patch16_224": dict(depth=2), "levit_128s": None, "efficientformer_l1": None,
         "swiftformer_xs": None, "fastvit_t8": None, "sequencer2d_s": None, "nest_tiny": {}, "volo_d1_224": None, "davit_tiny": dict(depths=(1, 1, 1, 1)),
         "focalnet_tiny_srf": {}, "gcvit_xxtiny": None, "efficientvit_m0": None, "tiny_vit_5m_224": None, "vit_small_patch16_rope_224": dict(depth=2)}
TORCHVISION = {"alexnet": 64, "densenet121": 32, "googlenet": 64, "mnasnet0_5": 64, "mobilenet_v2": 64, "shufflenet_v2_x0_5": 64, "squeezenet1_1": 64,
               "vgg11_bn": 64, "regnet_x_400mf": 64, "resnext50_32x4d": 32, "efficientnet_v2_s": 32, "inception_v3": 96, "swin_v2_t": 64, "maxvit_t": 224, "resnet18": 64}
OF_TORCHVISION = {"maxvit_t": dict(input_size=(224, 224)), "googlenet": dict(init_weights=False), "inception_v3": dict(init_weights=False, aux_logits=False)}

MODELS = {name: P(of_timm, name, side) for name, side in TIMM.items()}
for _name, _settings in SIZED.items():
    _has_side = _settings is not None and not any(family in _name for family in ("convmixer", "davit", "focalnet"))
    _side = 240 if _name.endswith("240") else 224 if "vit_5m" in _name or _settings is None else 112
    MODELS[_name] = P(of_timm, _name, _side, **({"img_size": 112} if _has_side else {}), **(_settings or {}))
MODELS.update({f"tv_{name}": P(of_torchvision, name, side, **OF_TORCHVISION.get(name, {}))
               for name, side in TORCHVISION.items()})
MODELS.update({f"tv_{name}": P(segmented, name) for name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large")})
MODELS.update({"tv_r3d_18": P(filmed, "r3d_18"), "tv_s3d": lambda: (filmed("s3d")[0], ((torch.randn(1, 3, 16, 224, 224),), {}))})
