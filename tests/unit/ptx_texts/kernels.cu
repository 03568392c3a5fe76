extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void reverse(const int* in, int* out) {
    __shared__ int tile[128];
    int t = threadIdx.x;
    tile[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    out[blockIdx.x * 128 + t] = tile[127 - t];
}
extern "C" __global__ void collatz(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], c = 0;
    while (v > 1) { v = (v & 1) ? 3 * v + 1 : v >> 1; ++c; }
    out[i] = c;
}
extern "C" __global__ void scan(const int* in, int* out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    for (int d = 1; d < 256; d <<= 1) {
        __syncthreads();
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
    }
    out[blockIdx.x * 256 + t] = s[t];
}
extern "C" __global__ void matmul(const double* a, const double* b, double* c, int n) {
    __shared__ double ta[8][8], tb[8][8];
    int tx = threadIdx.x & 7, ty = threadIdx.x >> 3;
    int row = blockIdx.y * 8 + ty, col = blockIdx.x * 8 + tx;
    double sum = 0;
    for (int k = 0; k < n; k += 8) {
        ta[ty][tx] = a[row * n + k + tx];
        tb[ty][tx] = b[(k + ty) * n + col];
        __syncthreads();
        for (int j = 0; j < 8; ++j) sum = fma(ta[ty][j], tb[j][tx], sum);
        __syncthreads();
    }
    c[row * n + col] = sum;
}
extern "C" __global__ void mixed(const short* a, const unsigned char* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long s = (long long)a[i] * b[i] - (i << 3);
    int q = a[i] / ((int)b[i] + 1), r = a[i] % ((int)b[i] + 1);
    s += ((long long)q << 20) ^ r;
    s += __popc((unsigned)a[i]) + __clz(b[i]) + min(q, r);
    out[i] = s;
}
