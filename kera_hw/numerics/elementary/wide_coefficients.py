"""Constants of the elementary functions, for f64 alone. Written by tools/derive_elementary.py."""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

# exp2: 2^r = 1 + r (EXP2_HIGH + EXP2_LOW) + r^2 * polynomial; EXP2_HIGH has 26 bits.
EXP2_HIGH = 0.6931471824645996
EXP2_LOW = -1.904654299957768e-09
EXP2_TAIL: tuple[float, ...] = (
    0.24022650695910072, 0.0555041086648216, 0.009618129107627719, 0.0013333558146415914,
    0.00015403530395075181, 1.5252733831061695e-05, 1.3215485250095525e-06, 1.0178061864730915e-07,
    7.055520813816362e-09, 4.4550557022124994e-10, 2.4822334880179462e-11,
)
# relative error 2^-61.79

# tanh x = x + x^3 * polynomial(x^2) for |x| < 1/2.
TANH_TAIL: tuple[float, ...] = (
    -0.3333333333333333, 0.1333333333333272, -0.053968253967648754, 0.021869488508419882,
    -0.008863234819163493, 0.003592116834559266, -0.00145572013729141, 0.0005892561853516321,
    -0.00023568534716551407, 8.700856997189556e-05, -2.2049329634105505e-05,
)
# relative error 2^-63.01

# sin, cos: entry n + 2 is digit n of 2/pi, the sum of digit * 2^(-27 n) for n >= 1.
# pi/2 = QUARTER + QUARTER_REST.
TURN: tuple[int, ...] = _TABLES.integers("TURN")
QUARTER = 1.5707963267948966
QUARTER_REST = 6.123233995736766e-17

# erf x = x (ERF_HIGH + ERF_LOW) + x^3 * polynomial(x^2) for |x| < 1/2; ERF_HIGH has 26 bits.
ERF_SCALE = 1.1283791670955126
ERF_HIGH = 1.1283791661262512
ERF_LOW = 9.692613531930338e-10
ERF_TAIL: tuple[float, ...] = (
    -0.37612638903183754, 0.11283791670955447, -0.026866170645357026, 0.0052239776326611816,
    -0.0008548328273602231, 0.00012055460119984896, -1.4933460944395957e-05, 1.6746960764068977e-06,
    -2.2030869803776185e-07, 6.169514076468471e-08,
)
# relative error 2^-62.38

# erf about j/16, j = 8 ... 95: row j - 8 is the value there in two parts, then the coefficients of
# the powers of the distance, at most 1/32. One tuple a column.
ERF_ROWS: tuple[tuple[float, ...], ...] = _TABLES.real_columns("ERF_ROWS")
# relative error 2^-58.58

# Phi(-a) e^(a^2 / 2), likewise, by b = a + 1: 16 intervals in each of [1, 2), [2, 4) ... [32, 64).
# PHI_MIDDLE is the middle of each, as a.
PHI_MIDDLE: tuple[float, ...] = _TABLES.reals("PHI_MIDDLE")
PHI_ROWS: tuple[tuple[float, ...], ...] = _TABLES.real_columns("PHI_ROWS")
# relative error 2^-58.57

# gelu x = x / 2 + GELU_CURVE x^2 - ... near 0.
GELU_CURVE = 0.3989422804014327
