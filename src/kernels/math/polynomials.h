// Written by scripts/make_polynomials.py, which explains the method. Do not edit.
// Constant term first. exp(r) = 1 + r + r^2 exp_tail(r), log(1 + f) = f + f^2 log_tail(f), erf(x) = x + x erf_tail(x^2),
// atan(t) = t + t^3 atan_tail(t^2) for t up to 1,
// normal_cdf(-a) = exp(-a^2 / 2) P / (1.5 + a (sqrt(2 pi) P + mills_rest(a))), P = mills_top(a);
// normal_cdf(-a) = (1 + a cdf_root(a))^8 / 2 for a up to 6.
#pragma once

namespace lamina::kernel::math {

inline constexpr struct {
  double exp_tail[5] = {0x1.0000000000000p-1, 0x1.5554b00000000p-3, 0x1.5554f00000000p-5, 0x1.12279e0000000p-7,
                        0x1.6d43ee0000000p-10};
  double log_tail[9] = {-0x1.fffff80000000p-2, 0x1.5555500000000p-2,  -0x1.0004300000000p-2,
                        0x1.99a3d60000000p-3,  -0x1.5425f20000000p-3, 0x1.22756a0000000p-3,
                        -0x1.0f46d20000000p-3, 0x1.082d820000000p-3,  -0x1.379b440000000p-4};
  double erf_tail[7] = {0x1.06eba80000000p-3, -0x1.81273e0000000p-2,  0x1.ce2cea0000000p-4, -0x1.b7f7b40000000p-6,
                        0x1.53f9720000000p-8, -0x1.a3980c0000000p-11, 0x1.485f520000000p-14};
  double atan_tail[9] = {-0x1.55553e0000000p-2, 0x1.9991e60000000p-3,  -0x1.2420bc0000000p-3,
                         0x1.c08fce0000000p-4,  -0x1.5816d80000000p-4, 0x1.da644a0000000p-5,
                         -0x1.fe07340000000p-6, 0x1.64cd960000000p-7,  -0x1.d4acca0000000p-10};
  double mills_top[6] = {0x1.8000000000000p-1, 0x1.a0a29a0000000p-1, 0x1.b2507a0000000p-2,
                         0x1.06276a0000000p-3, 0x1.6e97fc0000000p-6, 0x1.eb0a360000000p-10};
  double mills_rest[4] = {0x1.e380180000000p-1, 0x1.3f7c700000000p-2, 0x1.cb41620000000p-5, 0x1.33bf100000000p-8};
  double cdf_root[8] = {-0x1.98843a0000000p-4, -0x1.1d36d60000000p-5,  -0x1.81703e0000000p-11, 0x1.ae755e0000000p-10,
                        0x1.36f2e20000000p-15, -0x1.13ef980000000p-14, 0x1.131e0a0000000p-17,  -0x1.5f90f80000000p-22};
} kFloatPolynomials;

inline constexpr struct {
  double exp_tail[11] = {0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555ap-5,  0x1.111111110f6a9p-7,
                         0x1.6c16c16c1449ep-10, 0x1.a01a01afe69e5p-13, 0x1.a01a01b0a3c0fp-16, 0x1.71ddf850b6817p-19,
                         0x1.27e4c5c4a3bdap-22, 0x1.af5ec340825d4p-26, 0x1.1f9530f8af105p-29};
  double log_tail[22] = {-0x1.0000000000000p-1, 0x1.5555555555559p-2, -0x1.000000000007fp-2, 0x1.9999999998ec6p-3,
                         -0x1.5555555546aaep-3, 0x1.24924924ea122p-3, -0x1.000000062e354p-3, 0x1.c71c719fbf720p-4,
                         -0x1.999996bd8ba76p-4, 0x1.745d1b1959f96p-4, -0x1.5555ba8d3a24cp-4, 0x1.3b13b04101602p-4,
                         -0x1.2489aab6c1290p-4, 0x1.11083588ae4a9p-4, -0x1.00719daa953dfp-4, 0x1.e39e6ee6685bap-5,
                         -0x1.c0b7f4758c1f5p-5, 0x1.9b534587d3d6fp-5, -0x1.a920d99d7f8cdp-5, 0x1.f14a2b72a1bddp-5,
                         -0x1.bc8a4807226eep-5, 0x1.70d64ab97ddbfp-6};
  double erf_tail[13] = {0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b21p-4,  -0x1.b82ce312849b8p-6,
                         0x1.565bcd0db0749p-8,  -0x1.c02db3d8fa46ap-11, 0x1.f9a321a2a8a61p-14, -0x1.f4d1df579eb50p-17,
                         0x1.b9def329be12ap-20, -0x1.5f1d4408b7027p-23, 0x1.f7a4a24a7bbd1p-27, -0x1.386c80efb1ca4p-30,
                         0x1.057e6b987ce02p-34};
  double atan_tail[20] = {-0x1.5555555555525p-2, 0x1.9999999995508p-3,  -0x1.249249237d5d2p-3,  0x1.c71c717f6ca93p-4,
                          -0x1.745d11a87c05ap-4, 0x1.3b13665bb901cp-4,  -0x1.110e4f55858a7p-4,  0x1.e1bb92656532cp-5,
                          -0x1.ae5e1f4417dd1p-5, 0x1.82d9cbbb75820p-5,  -0x1.59a162a28c871p-5,  0x1.2c29443ddb916p-5,
                          -0x1.e9ea7f157970ep-6, 0x1.682a4e0d803adp-6,  -0x1.c76e021ec91ddp-7,  0x1.d78a8ebc9fed9p-8,
                          -0x1.7a0ac37fe160ep-9, 0x1.b3ba0a2bb1f98p-11, -0x1.3eff48ef93d23p-13, 0x1.bb970778c71cfp-17};
  double mills_top[11] = {0x1.8000000000000p-1,  0x1.452c511e369eep+0,  0x1.1063cde534a1bp+0, 0x1.243683d43173dp-1,
                          0x1.b8cafb022637ap-3,  0x1.e683effc4eb07p-5,  0x1.8d8e874d56358p-7, 0x1.dbd1bc44511dep-10,
                          0x1.90f03482a406cp-13, 0x1.b10d945998a44p-17, 0x1.cddfaeb8ddc43p-22};
  double mills_rest[9] = {0x1.db7615ab4c214p+0,  0x1.2d0e07dc3b876p+0,  0x1.eefe44214d077p-2,
                          0x1.1ee7ae9b47105p-3,  0x1.e2bca7e25697cp-6,  0x1.25ef6e126517bp-8,
                          0x1.f43d8bfd418e6p-12, 0x1.0f6031458c9e7p-15, 0x1.216fbb9afa857p-20};
} kDoublePolynomials;

}  // namespace lamina::kernel::math
