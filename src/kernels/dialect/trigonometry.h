// Constants for sine and cosine, which are always computed in double. sin(r) = r + r^3 sin_tail(r^2) and cos(r) = 1 - r^2 / 2
// + r^4 cos_tail(r^2) for |r| up to slightly more than pi / 4, by Taylor series. The truncation error is below 2^-36 of a
// float result and below 2^-57 of a double result.
#pragma once

#include <cstdint>

namespace lamina::kernel {

inline constexpr struct {
  double short_sin_tail[5] = {-0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
                              -0x1.ae64567f544e4p-26};
  double short_cos_tail[5] = {0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22,
                              0x1.1eed8eff8d898p-29};
  double sin_tail[8] = {-0x1.5555555555555p-3,  0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
                        -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49};
  double cos_tail[8] = {0x1.5555555555555p-5,  -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22,
                        0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53};
} kTrigonometry;

// pi / 2 as a sum of three doubles.
inline constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54,
                        kHalfPiLast = -0x1.f1976b7ed8fbcp-110;
inline constexpr double kInverseHalfPi = 0x1.45f306dc9c883p-1;

// Up to this |x| the angle is x - n pi / 2. Beyond it the angle comes from the digits of 2 / pi.
inline constexpr double kNearCircles = 0x1p27;

// The fractional bits of 2 / pi in groups of 24, as many as the largest double needs.
inline constexpr uint32_t kTwoOverPi[49] = {
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041, 0xfe5163, 0xabdebb,
    0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129, 0xa73ee8, 0x8235f5,
    0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41, 0x3991d6, 0x398353, 0x39f49c, 0x845f8b, 0xbdf928, 0x3b1ff8,
    0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf, 0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d,
    0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292, 0xea6bfb, 0x5fb11f, 0x8d5d08, 0x560330};

// The groups that affect the result. Float uses the first groups. Double uses the first groups below kVeryFar; from there on
// it starts at kFirstOfVeryFar, because earlier groups contribute whole turns, and x is scaled so that no product overflows.
inline constexpr int kGroupsOfFloat = 9, kGroupsOfDouble = 32, kFirstOfVeryFar = 17;
inline constexpr double kVeryFar = 0x1p500, kScaleOfVeryFar = 0x1p-600;

}  // namespace lamina::kernel
