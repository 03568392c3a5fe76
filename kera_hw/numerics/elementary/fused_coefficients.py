"""Constants of the elementary functions, for machines with fma. Written by tools/derive_elementary.py."""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

# 2^(j/16): entry j as bits, less j in the place of the exponent's sixteenths; k = 16 n + j in that place
# added, it is 2^(k/16).
POWERS: tuple[int, ...] = (
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238, 0x3fef06fe0a31b715,
    0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429, 0x3feea09e667f3bcd, 0x3feea11473eb0187,
    0x3feeace5422aa0db, 0x3feec49182a3f090, 0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487,
    0x3fefa4afa2a490da,
)

# exp, exp2: x = (k + r) ln 2 / 16, x = (k + r) / 16. 2^(r/16) = 1 + r * polynomial.
STEPS_OF_E = 23.083120654223414
EXP: tuple[float, ...] = (
    0.04332169878499661, 0.0009383847928089877, 1.3550807777522837e-05, 1.4676100321168426e-07,
    1.2716084294435731e-09, 9.181356142894057e-12,
)
# relative error 2^-56.14

# tanh: x = k ln 2 / 32 + r. e^2r = 1 + r * polynomial.
HALF_STEP = 0.02166084939249829
TANH: tuple[float, ...] = (
    2.0, 2.0000000000000004, 1.3333333332240966, 0.6666666666132927, 0.26667039109771906,
    0.08889003497677939,
)
# relative error 2^-55.1

# exp2: x = k / 16 + r. 2^r = 1 + r * polynomial.
EXP2: tuple[float, ...] = (
    0.6931471805599457, 0.24022650695910086, 0.05550410865673358, 0.009618129106480943,
    0.0013333780804438513, 0.00015403759517727442,
)
# relative error 2^-56.14
