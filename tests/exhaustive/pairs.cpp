// Every pair of operands of a 16-bit format. Appended to the generated function `subject`; the build defines
// WANTED (an expression in `double x, y`), PRECISION (digits) and LEAST (the exponent of the least normal number).
//
// The reference computes in double, on exact values of the operands: sums and products of two f16 and products of
// two bf16 are exact there, everything else is rounded to 53 digits, over twice the format's and two more, far
// from double's own limits. What it rounds to the format comes from adding a number whose last place is that of
// the result, and shares nothing with the subject.
//
// usage: pairs FIRST LAST   (first operands as bits, LAST included)
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static const uint32_t COUNT = 1u << 16;
static const int BIAS = 1 - (LEAST);

static double value[COUNT];
static uint16_t found[COUNT], wanted[COUNT];

static double of_bits(uint32_t bits) {
    const int exponent = (bits & 0x7fff) >> (PRECISION - 1);
    const double fraction = bits & ((1u << (PRECISION - 1)) - 1), sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 2 * BIAS + 1) return fraction ? (double)NAN : sign * INFINITY;
    const double significand = fraction + (exponent ? (double)(1u << (PRECISION - 1)) : 0.0);
    return sign * ldexp(significand, (exponent ? exponent : 1) - BIAS - (PRECISION - 1));
}

static inline uint16_t rounded(double x) {
    const uint64_t bits = __builtin_bit_cast(uint64_t, x);
    const uint64_t least = (uint64_t)(1023 + LEAST) << 52;
    uint64_t place = bits & (0x7ffull << 52);
    place = place < least ? least : place;
    const double anchor = __builtin_bit_cast(double, place + ((uint64_t)(53 - PRECISION) << 52 | 1ull << 51));
    const double near = __builtin_fabs((x + anchor) - anchor);
    // In units of the least number the value and its exponent give the bits.
    const uint64_t all = __builtin_bit_cast(uint64_t, near);
    const uint64_t usual = (all >> (53 - PRECISION)) - ((uint64_t)(1023 - BIAS) << (PRECISION - 1));
    const double lifted = near + __builtin_bit_cast(double, (uint64_t)(1023 + LEAST + 53 - PRECISION) << 52);
    const uint64_t little = __builtin_bit_cast(uint64_t, lifted) & 0xffff;
    const uint64_t infinity = (uint64_t)(2 * BIAS + 1) << (PRECISION - 1);
    uint64_t out = all < least ? little : usual;
    out = out < infinity ? out : infinity;
    const uint64_t size = bits & ~(1ull << 63);
    out = size >= 0x7ffull << 52 ? infinity : out;
    out |= bits >> 48 & 0x8000;
    return (uint16_t)(size > 0x7ffull << 52 ? infinity | 1ull << (PRECISION - 2) : out);
}

__attribute__((noinline)) static void run_subject(uint16_t a) {
    for (uint32_t b = 0; b < COUNT; b++) found[b] = subject(a, (uint16_t)b);
}

__attribute__((noinline)) static void run_wanted(double x) {
    for (uint32_t b = 0; b < COUNT; b++) { const double y = value[b]; wanted[b] = rounded(WANTED); }
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const uint32_t first = strtoul(arguments[1], 0, 0), last = strtoul(arguments[2], 0, 0);
    for (uint32_t b = 0; b < COUNT; b++) value[b] = of_bits(b);
    uint64_t checked = 0, different = 0, checksum = 0;
    for (uint32_t a = first; a <= last; a++) {
        run_subject((uint16_t)a);
        run_wanted(value[a]);
        uint64_t sum = 0, wrong = 0;
        for (uint32_t b = 0; b < COUNT; b++) {
            sum += (found[b] + 1ull) * (2 * b + 1);
            wrong += found[b] != wanted[b];
        }
        checksum = (checksum ^ sum) * 0x9e3779b97f4a7c15ull;
        checked += COUNT;
        if (wrong && different < 20)
            for (uint32_t b = 0; b < COUNT; b++)
                if (found[b] != wanted[b] && different++ < 20)
                    printf("d %04x %04x %04x %04x\n", a, b, found[b], wanted[b]);
        if (different >= 20) different += wrong;
    }
    printf("sum %llu %llu %016llx\n", (unsigned long long)checked, (unsigned long long)different,
           (unsigned long long)checksum);
    return 0;
}
