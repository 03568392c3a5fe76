"""Constants of the elementary functions. Written by tools/derive_elementary.py."""
from __future__ import annotations

from kera_hw.support.tables import read_tables

_TABLES = read_tables(__name__)

# exp: x = k ln 2 + r; k * LN2_HIGH is exact for |k| < 2^9. e^r = 1 + (r + r^2 * polynomial).
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471805598903
LN2_LOW = 5.497923018708371e-14
EXP: tuple[float, ...] = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333325896, 0.0013888888888882165,
    0.0001984126987541062, 2.4801587329991047e-05, 2.7557254823859485e-06, 2.7557268953016574e-07,
    2.5105411358184853e-08, 2.0916356042064867e-09,
)
# relative error 2^-62.1

# exp2: x = k + r. 2^r = 1 + r * polynomial.
EXP2: tuple[float, ...] = (
    0.6931471805599453, 0.24022650695910072, 0.05550410866482347, 0.009618129107627948,
    0.0013333558145993411, 0.00015403530394342198, 1.5252734219274008e-05, 1.3215486032104153e-06,
    1.0177905984791124e-07, 7.055179525324102e-09, 4.477798133335308e-10, 2.5347448666527557e-11,
)
# relative error 2^-59.28

# log, log2: x = 2^e m, c near 1/m from the table, r = m c - 1 exactly. The high parts are multiples of
# 2^-42, so that e * LN2_HIGH + LOG_HIGH is exact. |r| <= 2^-6.415. log(1 + r) = r + r^2 * polynomial.
LOG_START: tuple[int, ...] = (
    0x3fe5f00000000000,
)
LOG_RECIPROCAL: tuple[float, ...] = _TABLES.reals("LOG_RECIPROCAL")
LOG_HIGH: tuple[float, ...] = _TABLES.reals("LOG_HIGH")
LOG_LOW: tuple[float, ...] = _TABLES.reals("LOG_LOW")
LOG: tuple[float, ...] = (
    -0.5, 0.3333333333333648, -0.2500000000000486, 0.1999999981666956, -0.16666666454455975,
    0.14288384652664496, -0.12502648902968008,
)
# relative error 2^-60.64

# log2(1 + r) = r * LOG2_E_HIGH + (r * LOG2_E_LOW + r^2 * polynomial); the first product is exact at c = 1.
LOG2_E_HIGH = 1.4426950514316559
LOG2_E_LOW = -1.0542692476429138e-08
LOG2_HIGH: tuple[float, ...] = _TABLES.reals("LOG2_HIGH")
LOG2_LOW: tuple[float, ...] = _TABLES.reals("LOG2_LOW")
LOG2: tuple[float, ...] = (
    -0.7213475204444817, 0.48089834696303324, -0.3606737602229038, 0.2885390055315777, -0.24044916178536388,
    0.20613782365099423, -0.18041102430461825,
)
# relative error 2^-60.61

# sin, cos: |x| = M 2^(E - 23) with a 24-bit integer M; row E + 1 holds 2/pi * 2^(E - 23) modulo 4 as 32-bit
# limbs of weight 2^0 (TURN_4), 2^-32 (TURN_3) ... 2^-128 (TURN_0).
TURN_0: tuple[int, ...] = _TABLES.integers("TURN_0")
TURN_1: tuple[int, ...] = _TABLES.integers("TURN_1")
TURN_2: tuple[int, ...] = _TABLES.integers("TURN_2")
TURN_3: tuple[int, ...] = _TABLES.integers("TURN_3")
TURN_4: tuple[int, ...] = _TABLES.integers("TURN_4")
QUARTER = 1.5707963267948966
QUARTER_HIGH = 1.5707964897155762
QUARTER_LOW = -1.629206795526437e-07

# sin r = r + r z * polynomial(z), cos r = 1 - z / 2 + z^2 * polynomial(z), z = r^2.
SIN: tuple[float, ...] = (
    -0.16666666666666666, 0.008333333333332912, -0.00019841269840720397, 2.755731891653883e-06,
    -2.505202440802842e-08, 1.6047918754989178e-10, -7.057279900209424e-13,
)
# relative error 2^-60.9
COS: tuple[float, ...] = (
    0.041666666666666664, -0.0013888888888887061, 2.4801587298460852e-05, -2.755731715878704e-07,
    2.0876127961213353e-09, -1.138155333918998e-11,
)
# relative error 2^-60.68

# tanh x = x p(x^2) / q(x^2) for |x| <= 9.125, where an f32 has long been 1.
TANH_P: tuple[float, ...] = (
    1.0, 0.14992950008221087, 0.0056944002379337045, 8.305806033572051e-05, 5.321142759699586e-07,
    1.5043959400916458e-09, 1.6548916455382847e-12, 4.696797388234355e-16,
)
TANH_Q: tuple[float, ...] = (
    1.0, 0.4832628334155442, 0.03344867804311509, 0.0007658269208888366, 7.346806523129547e-06,
    3.1469889405979746e-08, 5.700112258060628e-11, 3.471090081289293e-14, 3.0859024385657223e-18,
)
# relative error 2^-59.24

# erf x = x p(x^2) / q(x^2) for |x| <= 3.96875, where an f32 has long been 1.
ERF_P: tuple[float, ...] = (
    1.1283791670955126, 0.22740254776456986, 0.0663342313176653, 0.007079632052184795,
    0.0008308777347351805, 5.538122120591916e-05, 3.4323844096198795e-06, 1.4235335191756557e-07,
    4.652071428948622e-09, 9.866552318954186e-11, 9.404060996627123e-13, 1.0433611928864015e-15,
)
ERF_Q: tuple[float, ...] = (
    1.0, 0.5348635940788515, 0.13707504656588246, 0.022289007137183573, 0.0025637284579378226,
    0.00021980276769859676, 1.4382649816051254e-05, 7.201020314675369e-07, 2.7017849139589017e-08,
    7.150758570459806e-10, 1.1346960904004406e-11, 4.709643470751337e-14,
)
# relative error 2^-56.03

# Phi(-a) = e^(-a^2 / 2) p(a) / q(a) for 0 <= a <= 15; Phi is the normal distribution function.
PHI_P: tuple[float, ...] = (
    0.5, 0.791425731300322, 0.6242666320682996, 0.31571509122070496, 0.11214207751598379,
    0.029072125511406758, 0.005559163426042904, 0.0007746172945207697, 7.549142220958515e-05,
    4.673218469702903e-06, 1.409460949173888e-07,
)
PHI_Q: tuple[float, ...] = (
    1.0, 2.3807360234035095, 2.648085780557463, 1.8198904509957494, 0.8604879300951399, 0.29465828083121487,
    0.07479126437925883, 0.014123278426169323, 0.001953391638665863, 0.00018958223275520507,
    1.1714021551460401e-05, 3.53299466705649e-07,
)
# relative error 2^-57.46

# Inputs at which a program's f64 lies on the wrong side of a rounding boundary, with the value to
# give there: the function's, rounded to odd. Found by running every f32 input.
PATCHES: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": (
    ),
    "exp2": (
        (0.0029695758130401373, 1.0020604729652407),
        (-0.029743773862719536, 0.979594260454178),
    ),
    "log": (
    ),
    "log2": (
    ),
    "sin": (
        (9830.3984375, -0.3476132601499557),
        (-9830.3984375, 0.3476132601499557),
    ),
    "cos": (
        (1.100467763087514e+19, 0.9964101016521453),
        (1.7269983397793917e+20, 0.9690579473972322),
        (-1.100467763087514e+19, 0.9964101016521453),
        (-1.7269983397793917e+20, 0.9690579473972322),
    ),
    "tanh": (
    ),
    "sigmoid": (
    ),
    "erf": (
    ),
    "gelu": (
    ),
    "silu": (
    ),
}
