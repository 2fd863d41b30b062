#!/usr/bin/env python3
"""Derives the coefficients in src/backends/cpu/vector_math_tables.h and writes that file.

Needs mpmath (a development-time tool; the build reads only the header). Usage: scripts/make_polynomials.py > HEADER

Method. Weighted linear least squares on f Q - P = 0 over Chebyshev nodes in 50 digits, the weights divided by the last Q
(Sanathanan-Koerner) and sharpened towards equal ripple by Lawson's update, so that what comes out is close to the minimax
approximation. The weight makes the error relative to the final result of the function, not to f. Coefficients in float are
rounded one by one from the constant term upward; after each rounding the rest are fitted again around what is already
fixed, so that the rounded polynomial is about as good as the exact one.
"""
import sys

import mpmath as mp

mp.mp.dps = 50


def round_to(value, bits):
    """Nearest value with `bits` of significand."""
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
    """Nodes dense towards both ends; `squeeze` 2 gathers them near `low` as well, for functions that change fastest there."""
    shares = [(1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count)) / 2 for i in range(count)]
    return [low + (high - low) * share**squeeze for share in shares]


class Fit:
    """P / Q (Q(0) = 1; degree 0: a polynomial) against f at nodes, for a small largest error |weight (f - P / Q)|.

    Coefficients in `fixed` and `fixed_q` are the first of P and Q and stay as they are.
    """

    def __init__(self, f, weight, nodes, top, bottom=0, fixed=(), fixed_q=(mp.mpf(1),)):
        self.xs, self.top, self.bottom, self.fixed, self.fixed_q = nodes, top, bottom, list(fixed), list(fixed_q)
        self.values = [f(x) for x in nodes]
        self.weights = [weight(x) for x in nodes]
        self.best_error = mp.inf
        self.lawson, self.q_last = [mp.mpf(1)] * len(nodes), [mp.mpf(1)] * len(nodes)
        for _ in range(12 + 4 * bottom):
            self.iterate()

    def iterate(self):
        p, q = self.solve()
        self.q_last = [horner(q, x) for x in self.xs]
        errors = self.errors(p, q)
        if max(errors) < self.best_error:
            self.p, self.q, self.best_error = p, q, max(errors)
        mean = sum(l * e for l, e in zip(self.lawson, errors)) / sum(self.lawson)
        self.lawson = [l * (e / mean + mp.mpf("0.05")) for l, e in zip(self.lawson, errors)]

    def solve(self):
        start, start_q = len(self.fixed), len(self.fixed_q)
        unknowns, unknowns_q = self.top + 1 - start, self.bottom + 1 - start_q
        rows, right = mp.matrix(len(self.xs), unknowns + unknowns_q), mp.matrix(len(self.xs), 1)
        for i, (x, value) in enumerate(zip(self.xs, self.values)):
            scale = mp.sqrt(self.lawson[i]) * self.weights[i] / self.q_last[i]
            powers = [scale * x**j for j in range(max(self.top, self.bottom) + 1)]
            for j in range(unknowns):
                rows[i, j] = powers[start + j]
            for j in range(unknowns_q):
                rows[i, unknowns + j] = -value * powers[start_q + j]
            right[i] = scale * (value * horner(self.fixed_q, x) - horner(self.fixed, x))
        solution = mp.qr_solve(rows, right)[0]
        found = [solution[j] for j in range(unknowns + unknowns_q)]
        return self.fixed + found[:unknowns], self.fixed_q + found[unknowns:]

    def errors(self, p, q):
        return [w * abs(value - horner(p, x) / horner(q, x)) for x, value, w in zip(self.xs, self.values, self.weights)]


def report(name, fit, p, q):
    power = lambda error: "2^" + mp.nstr(mp.log(error, 2), 4)
    print(f"{name}: degree {fit.top}/{fit.bottom}, relative error {power(fit.best_error)} before rounding, "
          f"{power(max(fit.errors(p, q)))} after", file=sys.stderr)


def polynomial(name, f, weight, low, high, degree, bits, fixed=()):
    """Coefficients from the constant term upward, each representable in `bits`."""
    nodes = chebyshev_nodes(low, high, 6 * (degree + 1))
    fit = first = Fit(f, weight, nodes, degree, fixed=[mp.mpf(c) for c in fixed])
    if bits <= 24:  # in double the rounding of coefficients is far below what the evaluation rounds anyway
        while len(fit.fixed) < degree:
            done = len(fit.fixed)
            fit = Fit(f, weight, nodes, degree, fixed=fit.fixed + [round_to(fit.p[done], bits)])
    p = [round_to(c, bits) for c in fit.p]
    report(name, first, p, [mp.mpf(1)])
    return p


def rational(name, f, low, high, top, bottom, bits, fixed=()):
    nodes = chebyshev_nodes(low, high, 6 * (top + bottom + 2), squeeze=2)
    weight = lambda x: 1 / f(x)
    fit = first = Fit(f, weight, nodes, top, bottom, [mp.mpf(c) for c in fixed])
    while bits <= 24 and len(fit.fixed) <= top and len(fit.fixed_q) < bottom:
        fixed = fit.fixed + [round_to(fit.p[len(fit.fixed)], bits)]
        fit = Fit(f, weight, nodes, top, bottom, fixed, fit.fixed_q)
        fixed_q = fit.fixed_q + [round_to(fit.q[len(fit.fixed_q)], bits)]
        fit = Fit(f, weight, nodes, top, bottom, fit.fixed, fixed_q)
    p, q = ([round_to(c, bits) for c in part] for part in (fit.p, fit.q))
    report(name, first, p, q)
    return p, q


def series(f, terms):
    """f near 0 by its Taylor coefficients, elsewhere directly: for quotients that cancel at 0."""
    return lambda x: horner(terms, x) if abs(x) < mp.mpf("1e-8") else f(x)


# exp(r) = 1 + r + r^2 q(r) for |r| <= ln(2) / 2; error relative to expm1, so that tanh and expm1 can use q too.
exp_tail = series(lambda r: (mp.expm1(r) - r) / r**2, [1 / mp.factorial(i + 2) for i in range(8)])
# log(1 + f) = f + f^2 g(f) for 1 + f in [sqrt(1/2), sqrt(2)].
log_tail = series(lambda f: (mp.log1p(f) - f) / f**2, [mp.mpf((-1) ** (i + 1)) / (i + 2) for i in range(8)])
# erf(x) = x + x e(x^2) for x^2 <= 1.
erf_tail = series(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1,
                  [2 / mp.sqrt(mp.pi) * (-1) ** i / (mp.factorial(i) * (2 * i + 1)) - (i == 0) for i in range(8)])


def mills(a):
    """normal_cdf(-a) exp(a^2 / 2)."""
    return mp.erfc(a / mp.sqrt(2)) * mp.exp(a * a / 2) / 2


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")  # a little more than the reduction leaves
LOG_LOW, LOG_HIGH = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1


def tables(bits, exp_degree, log_degree, erf_degree, mills_degrees, tail_end):
    log_weight = lambda f: f * f / abs(mp.log1p(f)) if abs(f) > 1e-20 else abs(f)
    erf_weight = lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)) if s > 0 else mp.mpf(1)
    p, q = rational("mills", mills, mp.mpf(0), mp.mpf(tail_end), *mills_degrees, bits, fixed=[0.5])
    return {
        "exp_tail": polynomial("exp", exp_tail, abs, -HALF_LN2, HALF_LN2, exp_degree, bits),
        "log_tail": polynomial("log", log_tail, log_weight, LOG_LOW, LOG_HIGH, log_degree, bits),
        "erf_tail": polynomial("erf", erf_tail, erf_weight, mp.mpf(0), mp.mpf(1), erf_degree, bits),
        "mills_top": p,
        "mills_bottom": q,
    }


def literal(value):
    """A double holds every coefficient exactly, also those of float; hexadecimal says so."""
    return float(value).hex()


def print_table(name, rows):
    print(f"inline constexpr struct {{")
    for field, values in rows.items():
        print(f"  double {field}[{len(values)}] = {{{', '.join(literal(v) for v in values)}}};")
    print(f"}} {name};")
    print()


def main():
    print("// Written by scripts/make_polynomials.py, which explains how; do not edit.")
    print("// Constant term first. exp(r) = 1 + r + r^2 exp_tail(r), log(1 + f) = f + f^2 log_tail(f), erf(x) = x + x erf_tail(x^2),")
    print("// normal_cdf(-a) = exp(-a^2 / 2) mills_top(a) / mills_bottom(a).")
    print("#pragma once")
    print()
    print("namespace lamina::cpu {")
    print()
    print_table("kFloatPolynomials", tables(24, 4, 8, 6, (4, 5), "14.5"))
    print_table("kDoublePolynomials", tables(53, 10, 21, 12, (10, 11), "38.7"))
    print("}  // namespace lamina::cpu")


if __name__ == "__main__":
    main()
