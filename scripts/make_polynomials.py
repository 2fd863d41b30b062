#!/usr/bin/env python3
"""Derives the coefficients in src/kernels/math/polynomials.h and writes that file.

Needs mpmath (a development-time tool; the build reads only the header). Usage: scripts/make_polynomials.py > HEADER

Method. Weighted linear least squares on f Q - P = 0 over Chebyshev nodes in 50 digits, the weights divided by the last Q
(Sanathanan-Koerner) and adjusted towards equal ripple by Lawson's update, so that the result is close to the minimax
approximation. The weight makes the error relative to the final result of the function, not to f. Coefficients in float are
rounded one by one from the constant term upward; after each rounding the remaining coefficients are fitted again, so that the
rounded polynomial is about as accurate as the exact one.
"""
import sys

import mpmath as mp

mp.mp.dps = 50


def round_to(value, bits):
    """Returns the nearest value with `bits` bits of significand."""
    if value == 0:
        return mp.mpf(0)
    exponent = mp.floor(mp.log(abs(value), 2)) - (bits - 1)
    scale = mp.power(2, exponent)
    return mp.nint(value / scale) * scale


def horner(coefficients, x):
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def chebyshev_nodes(low, high, count, squeeze=1):
    """Returns nodes that are denser towards both ends; `squeeze` 2 concentrates them near `low`, for functions that change
    fastest there."""
    shares = [(1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count)) / 2 for i in range(count)]
    return [low + (high - low) * share**squeeze for share in shares]


class Fit:
    """Fits P / Q to f at nodes, minimising the largest error |weight (f - P / Q)|. Q = q0 + x (slope P + S): with slope 0 and
    an empty S (bottom -1) the result is a polynomial; `mills` below uses another slope.

    Coefficients in `fixed` and `fixed_s` are the first of P and S and do not change.
    """

    def __init__(self, f, weight, nodes, top, bottom=-1, fixed=(), fixed_s=(), q0=1, slope=0):
        self.xs, self.top, self.bottom = nodes, top, bottom
        self.fixed, self.fixed_s, self.q0, self.slope = list(fixed), list(fixed_s), mp.mpf(q0), mp.mpf(slope)
        self.values = [f(x) for x in nodes]
        self.weights = [weight(x) for x in nodes]
        self.best_error = mp.inf
        self.lawson, self.q_last = [mp.mpf(1)] * len(nodes), [mp.mpf(1)] * len(nodes)
        for _ in range(16 + 4 * (bottom + 1)):
            self.iterate()

    def iterate(self):
        p, s = self.solve()
        self.q_last = [self.denominator(p, s, x) for x in self.xs]
        errors = self.errors(p, s)
        if max(errors) < self.best_error:
            self.p, self.s, self.best_error = p, s, max(errors)
        mean = sum(l * e for l, e in zip(self.lawson, errors)) / sum(self.lawson)
        self.lawson = [l * (e / mean + mp.mpf("0.05")) for l, e in zip(self.lawson, errors)]

    def denominator(self, p, s, x):
        return self.q0 + x * (self.slope * horner(p, x) + horner(s, x))

    def solve(self):
        start, start_s = len(self.fixed), len(self.fixed_s)
        unknowns, unknowns_s = self.top + 1 - start, self.bottom + 1 - start_s
        rows, right = mp.matrix(len(self.xs), unknowns + unknowns_s), mp.matrix(len(self.xs), 1)
        for i, (x, value) in enumerate(zip(self.xs, self.values)):
            scale = mp.sqrt(self.lawson[i]) * self.weights[i] / self.q_last[i]
            of_p = scale * (1 - value * self.slope * x)
            for j in range(unknowns):
                rows[i, j] = of_p * x ** (start + j)
            for j in range(unknowns_s):
                rows[i, unknowns + j] = -scale * value * x ** (start_s + j + 1)
            right[i] = scale * value * (self.q0 + x * horner(self.fixed_s, x)) - of_p * horner(self.fixed, x)
        solution = mp.qr_solve(rows, right)[0]
        found = [solution[j] for j in range(unknowns + unknowns_s)]
        return self.fixed + found[:unknowns], self.fixed_s + found[unknowns:]

    def errors(self, p, s):
        return [w * abs(value - horner(p, x) / self.denominator(p, s, x))
                for x, value, w in zip(self.xs, self.values, self.weights)]


def report(name, fit, p, s):
    power = lambda error: "2^" + mp.nstr(mp.log(error, 2), 4)
    print(f"{name}: degree {fit.top}/{fit.bottom}, relative error {power(fit.best_error)} before rounding, "
          f"{power(max(fit.errors(p, s)))} after", file=sys.stderr)


def polynomial(name, f, weight, low, high, degree, bits, fixed=()):
    """Returns coefficients from the constant term upward, each representable in `bits` bits."""
    nodes = chebyshev_nodes(low, high, 6 * (degree + 1))
    fit = first = Fit(f, weight, nodes, degree, fixed=[mp.mpf(c) for c in fixed])
    if bits <= 24:  # in double the rounding of coefficients is far below the rounding of the evaluation
        while len(fit.fixed) < degree:
            done = len(fit.fixed)
            fit = Fit(f, weight, nodes, degree, fixed=fit.fixed + [round_to(fit.p[done], bits)])
    p = [round_to(c, bits) for c in fit.p]
    report(name, first, p, [])
    return p


def rational(name, f, low, high, top, bottom, bits, p0, q0, slope):
    nodes = chebyshev_nodes(low, high, 6 * (top + bottom + 2), squeeze=2)
    refit = lambda p, s: Fit(f, lambda x: 1 / f(x), nodes, top, bottom, p, s, q0, slope)
    fit = first = refit([mp.mpf(p0)], [])
    while bits <= 24 and (len(fit.fixed) <= top or len(fit.fixed_s) < bottom):
        if len(fit.fixed) <= top:
            fit = refit(fit.fixed + [round_to(fit.p[len(fit.fixed)], bits)], fit.fixed_s)
        if len(fit.fixed_s) < bottom:
            fit = refit(fit.fixed, fit.fixed_s + [round_to(fit.s[len(fit.fixed_s)], bits)])
    p, s = ([round_to(c, bits) for c in part] for part in (fit.p, fit.s))
    report(name, first, p, s)
    return p, s


def series(f, terms):
    """Evaluates f near 0 by its Taylor series and elsewhere directly, for quotients that cancel at 0."""
    return lambda x: horner(terms, x) if abs(x) < mp.mpf("1e-8") else f(x)


# exp(r) = 1 + r + r^2 q(r) for |r| <= ln(2) / 2; error relative to expm1, so that tanh and expm1 can use q too.
exp_tail = series(lambda r: (mp.expm1(r) - r) / r**2, [1 / mp.factorial(i + 2) for i in range(8)])
# log(1 + f) = f + f^2 g(f) for 1 + f in [sqrt(1/2), sqrt(2)].
log_tail = series(lambda f: (mp.log1p(f) - f) / f**2, [mp.mpf((-1) ** (i + 1)) / (i + 2) for i in range(8)])
# erf(x) = x + x e(x^2) for x^2 <= 1.
erf_tail = series(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1,
                  [2 / mp.sqrt(mp.pi) * (-1) ** i / (mp.factorial(i) * (2 * i + 1)) - (i == 0) for i in range(8)])
# atan(t) = t + t^3 a(t^2) for t^2 <= 1.
atan_tail = series(lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, [mp.mpf((-1) ** (i + 1)) / (2 * i + 3) for i in range(8)])
# normal_cdf(-a) = (1 + a r(a))^8 / 2 for 0 <= a <= ROOT_END: the eighth root is smooth and has no leading zeros there.
eighth_root = lambda a: mp.erfc(a / mp.sqrt(2)) ** mp.mpf("0.125")
cdf_root = series(lambda a: (eighth_root(a) - 1) / a, [-1 / (4 * mp.sqrt(2 * mp.pi))])
ROOT_END, ROOT_DEGREE = mp.mpf(6), 7


def mills(a):
    """normal_cdf(-a) exp(a^2 / 2)."""
    return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) / 2


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")  # slightly more than the range after reduction
LOG_LOW, LOG_HIGH = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1


def tables(bits, exp_degree, log_degree, erf_degree, atan_degree, mills_degrees, tail_end):
    log_weight = lambda f: f * f / abs(mp.log1p(f)) if abs(f) > 1e-20 else abs(f)
    erf_weight = lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)) if s > 0 else mp.mpf(1)
    atan_weight = lambda s: s * mp.sqrt(s) / mp.atan(mp.sqrt(s)) if s > 0 else mp.mpf(0)
    # mills(a) tends to 1 / (sqrt(2 pi) a). With that slope an error of P, which is large for large a, cancels in P / Q. Near
    # 0 the result is slightly below 1/2, where an ULP is small. P and Q start in the middle of a binade, so that their ULPs
    # are not larger than necessary.
    slope = round_to(mp.sqrt(2 * mp.pi), bits)
    p, s = rational("mills", mills, mp.mpf(0), mp.mpf(tail_end), *mills_degrees, bits, 0.75, 1.5, slope)
    return {
        "exp_tail": polynomial("exp", exp_tail, abs, -HALF_LN2, HALF_LN2, exp_degree, bits),
        "log_tail": polynomial("log", log_tail, log_weight, LOG_LOW, LOG_HIGH, log_degree, bits),
        "erf_tail": polynomial("erf", erf_tail, erf_weight, mp.mpf(0), mp.mpf(1), erf_degree, bits),
        "atan_tail": polynomial("atan", atan_tail, atan_weight, mp.mpf(0), mp.mpf(1), atan_degree, bits),
        "mills_top": p,
        "mills_rest": s,
    }


def literal(value):
    """A double represents every coefficient exactly, including floats; hexadecimal literals preserve this."""
    return float(value).hex()


def print_table(name, rows):
    print(f"inline constexpr struct {{")
    for field, values in rows.items():
        print(f"  double {field}[{len(values)}] = {{{', '.join(literal(v) for v in values)}}};")
    print(f"}} {name};")
    print()


def root_table(bits):
    # The error of normal_cdf is 4 root^7 times the root's, relative 8 / root times. An absolute error of 2^-26 counts as much
    # as a relative one of 2^-16, and beyond a = 4 of 2^-10.
    def weight(a):
        root = eighth_root(a)
        return a * max(4 * root**7, 8 / root * mp.mpf(2) ** (-10 if a <= 4 else -16))
    return {"cdf_root": polynomial("cdf_root", cdf_root, weight, mp.mpf(0), ROOT_END, ROOT_DEGREE, bits)}


def main():
    print("// Written by scripts/make_polynomials.py, which explains the method. Do not edit.")
    print("// Constant term first. exp(r) = 1 + r + r^2 exp_tail(r), log(1 + f) = f + f^2 log_tail(f), erf(x) = x + x erf_tail(x^2),")
    print("// atan(t) = t + t^3 atan_tail(t^2) for t up to 1,")
    print("// normal_cdf(-a) = exp(-a^2 / 2) P / (1.5 + a (sqrt(2 pi) P + mills_rest(a))), P = mills_top(a);")
    print("// normal_cdf(-a) = (1 + a cdf_root(a))^8 / 2 for a up to 6.")
    print("#pragma once")
    print()
    print("namespace lamina::kernel::math {")
    print()
    print_table("kFloatPolynomials", tables(24, 4, 8, 6, 8, (5, 3), "14.5") | root_table(24))
    print_table("kDoublePolynomials", tables(53, 10, 21, 12, 19, (10, 8), "38.7"))
    print("}  // namespace lamina::kernel::math")


if __name__ == "__main__":
    main()
