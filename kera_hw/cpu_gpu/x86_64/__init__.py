"""x86-64 with AVX2, BMI and FMA."""
