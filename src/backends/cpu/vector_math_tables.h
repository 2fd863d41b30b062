// Written by scripts/make_polynomials.py, which explains how; do not edit.
// Constant term first. exp(r) = 1 + r + r^2 exp_tail(r), log(1 + f) = f + f^2 log_tail(f), erf(x) = x + x erf_tail(x^2),
// normal_cdf(-a) = exp(-a^2 / 2) mills_top(a) / mills_bottom(a).
#pragma once

namespace lamina::cpu {

inline constexpr struct {
  double exp_tail[5] = {0x1.0000000000000p-1, 0x1.5554b00000000p-3, 0x1.5554f00000000p-5, 0x1.12279e0000000p-7,
                        0x1.6d43ee0000000p-10};
  double log_tail[9] = {-0x1.fffff80000000p-2, 0x1.5555500000000p-2,  -0x1.0004300000000p-2,
                        0x1.99a3d60000000p-3,  -0x1.5425ee0000000p-3, 0x1.2275680000000p-3,
                        -0x1.0f470c0000000p-3, 0x1.082dc20000000p-3,  -0x1.379a980000000p-4};
  double erf_tail[7] = {0x1.06eba80000000p-3, -0x1.81273e0000000p-2,  0x1.ce2cec0000000p-4, -0x1.b7f7f00000000p-6,
                        0x1.53fbd80000000p-8, -0x1.a3ac5e0000000p-11, 0x1.489c720000000p-14};
  double mills_top[5] = {0x1.0000000000000p-1, 0x1.c032100000000p-2, 0x1.7647860000000p-3, 0x1.4b74f80000000p-5,
                         0x1.0be7140000000p-8};
  double mills_bottom[6] = {0x1.0000000000000p+0, 0x1.ac5b360000000p+0, 0x1.3359060000000p+0,
                            0x1.df6d660000000p-2, 0x1.9f72420000000p-4, 0x1.4fc3200000000p-7};
} kFloatPolynomials;

inline constexpr struct {
  double exp_tail[11] = {0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555ap-5,  0x1.111111110f6aap-7,
                         0x1.6c16c16c14494p-10, 0x1.a01a01afe6902p-13, 0x1.a01a01b0a4fafp-16, 0x1.71ddf850b499cp-19,
                         0x1.27e4c5c42c449p-22, 0x1.af5ec365fc380p-26, 0x1.1f952fb708f8bp-29};
  double log_tail[22] = {-0x1.0000000000000p-1, 0x1.5555555555559p-2, -0x1.000000000007fp-2, 0x1.9999999998ec4p-3,
                         -0x1.5555555546a81p-3, 0x1.24924924ea282p-3, -0x1.000000062e954p-3, 0x1.c71c719fb3287p-4,
                         -0x1.999996bd81676p-4, 0x1.745d1b1b68890p-4, -0x1.5555ba8dd60e5p-4, 0x1.3b13b00ace7c6p-4,
                         -0x1.2489aa924d35dp-4, 0x1.110838f1eb926p-4, -0x1.0071a203e5ca0p-4, 0x1.e39e2ee28ffeep-5,
                         -0x1.c0b77742688d0p-5, 0x1.9b546fcc9601ep-5, -0x1.a92443dea480dp-5, 0x1.f1492050228b4p-5,
                         -0x1.bc80e09de5922p-5, 0x1.70c7fa20d3f33p-6};
  double erf_tail[13] = {0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b21p-4,  -0x1.b82ce312849a9p-6,
                         0x1.565bcd0db04cep-8,  -0x1.c02db3d8f2bf8p-11, 0x1.f9a321a1c3b16p-14, -0x1.f4d1df45dfe21p-17,
                         0x1.b9def240759b5p-20, -0x1.5f1d3c29d0bdep-23, 0x1.f7a44c6e8602ap-27, -0x1.386b74d347a6ap-30,
                         0x1.057b910f26f34p-34};
  double mills_top[11] = {0x1.0000000000000p-1,  0x1.a7b70c1b9df0fp-1,  0x1.5bac5b01b4b22p-1, 0x1.6d79ed9f82690p-2,
                          0x1.0dfdd89a6de81p-3,  0x1.2396d97ebcca4p-5,  0x1.d19f61ae85072p-8, 0x1.0fb88b685a8b5p-10,
                          0x1.bd5c5a3da6c81p-14, 0x1.d21a56343a03fp-18, 0x1.dee74b3ed9f14p-23};
  double mills_bottom[12] = {0x1.0000000000000p+0, 0x1.39fc9add1fd1cp+1,  0x1.685c9f1501bd5p+1,  0x1.ffe44c49f2d86p+0,
                             0x1.f52ab7521c5c0p-1, 0x1.6414dd232a89dp-2,  0x1.77f3dab42b0bdp-4,  0x1.2820ccb6b5e0dp-6,
                             0x1.56d563219323fp-9, 0x1.17acb3639dc54p-12, 0x1.24162f8e329a4p-16, 0x1.2c1bb6d2af043p-21};
} kDoublePolynomials;

}  // namespace lamina::cpu
