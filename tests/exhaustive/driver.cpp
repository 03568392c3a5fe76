// Every f32 input of one function. Appended to the generated function `subject`; the build defines
// FILTER (an expression in `double x`) and MARGIN (the relative error it is granted).
//
// The filter is the host's f64 libm, which shares nothing with the subject. Where rounding both ends of
// value * (1 -+ MARGIN) to f32 agrees, that is the correct result, and the subject must have it. All other
// inputs, and every disagreement, are printed for MPFR to settle.
//
// usage: check FIRST LAST   (inputs as bits, LAST included; a multiple of BLOCK each, less one for LAST)

static const uint64_t BLOCK = 4096;

static inline float to_f32(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t f32_bits(float x) {
    uint32_t bits; memcpy(&bits, &x, 4);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;
}

static float result[BLOCK];
static double wide[BLOCK];

__attribute__((noinline)) static void run_subject(uint32_t first) {
    for (uint32_t i = 0; i < BLOCK; i++) result[i] = (float)subject((double)to_f32(first + i));
}

__attribute__((noinline)) static void run_filter(uint32_t first) {
    for (uint32_t i = 0; i < BLOCK; i++) { const double x = (double)to_f32(first + i); wide[i] = FILTER; }
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const uint64_t first = strtoull(arguments[1], 0, 0), last = strtoull(arguments[2], 0, 0);
    uint64_t checksum = 0, checked = 0, close = 0, different = 0;
    for (uint64_t base = first; base <= last; base += BLOCK) {
        run_subject((uint32_t)base);
        run_filter((uint32_t)base);
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t bits = (uint32_t)base + i, got = f32_bits(result[i]);
            double low = wide[i] * (1.0 - MARGIN), high = wide[i] * (1.0 + MARGIN);
#ifdef HALF_BELOW
            // gelu, silu: x/2 + x^2 c, 0 < c < 1/2. Below 2^-60 that lies above x/2 and at most at
            // x/2 + |x| 2^-60; no rounding boundary is between x/2 and the next f64, which is the low end.
            const double x = (double)to_f32(bits), size = fabs(x);
            if (size < 0x1p-60 && x != 0.0) { low = 0.5 * x + size * 0x1p-53; high = 0.5 * x + size * 0x1p-50; }
#endif
            const uint32_t one = f32_bits((float)low), two = f32_bits((float)high);
            checksum += (((uint64_t)bits << 32 | got) ^ 0x9e3779b97f4a7c15ull) * (2 * (uint64_t)bits + 1);
            if (one != two) { close++; printf("c %08x %08x\n", bits, got); }
            else if (one != got) { different++; printf("d %08x %08x\n", bits, got); }
        }
        checked += BLOCK;
        if (different > 100000 || close > 20000000) break;
    }
    printf("sum %llu %llu %llu %016llx\n", (unsigned long long)checked, (unsigned long long)close,
           (unsigned long long)different, (unsigned long long)checksum);
    return 0;
}
