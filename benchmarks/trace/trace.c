// The same steps in C: what the processor could do. One particle at a time, threads over particles.
#include <math.h>
#include <stdint.h>

static void velocity(const float *data, int n, int slices, float per_slice, const float *x, float t,
                     float *v) {
    float f = t * per_slice;
    int k = (int)f;
    if (k > slices - 2) k = slices - 2;
    float w = f - k;
    float s[3];
    int i[3];
    for (int a = 0; a < 3; a++) {
        float g = fminf(fmaxf(x[a] * (n - 1), 0.0f), (float)(n - 1));
        i[a] = (int)g;
        if (i[a] > n - 2) i[a] = n - 2;
        s[a] = g - i[a];
    }
    int64_t nodes = (int64_t)n * n * n;
    const float *one = data + 3 * (k * nodes + ((int64_t)i[0] * n + i[1]) * n + i[2]);
    float both[2][3];
    for (int p = 0; p < 2; p++) {
        const float *d = one + 3 * p * nodes;
        for (int c = 0; c < 3; c++) {
            float q[4];
            for (int m = 0; m < 4; m++) {
                const float *e = d + 3 * (((m >> 1) * n + (m & 1)) * n) + c;
                q[m] = e[0] + (e[3] - e[0]) * s[2];
            }
            float lo = q[0] + (q[1] - q[0]) * s[1], hi = q[2] + (q[3] - q[2]) * s[1];
            both[p][c] = lo + (hi - lo) * s[0];
        }
    }
    for (int c = 0; c < 3; c++) v[c] = both[0][c] + (both[1][c] - both[0][c]) * w;
}

static float fold(float x) {
    x -= 2.0f * floorf(0.5f * x);
    return x <= 1.0f ? x : 2.0f - x;
}

// Every step of every particle is kept: kept[steps + 1][particles][3], the first being the seeds.
void track(const float *data, int n, int slices, float end, float *kept, int particles, int steps,
           float h, int threads) {
    float per_slice = (slices - 1) / end;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int p = 0; p < particles; p++) {
        float x[3], y[3], k1[3], k2[3], k3[3], k4[3];
        for (int c = 0; c < 3; c++) x[c] = kept[3 * p + c];
        for (int m = 0; m < steps; m++) {
            float t = m * h;
            velocity(data, n, slices, per_slice, x, t, k1);
            for (int c = 0; c < 3; c++) y[c] = x[c] + 0.5f * h * k1[c];
            velocity(data, n, slices, per_slice, y, t + 0.5f * h, k2);
            for (int c = 0; c < 3; c++) y[c] = x[c] + 0.5f * h * k2[c];
            velocity(data, n, slices, per_slice, y, t + 0.5f * h, k3);
            for (int c = 0; c < 3; c++) y[c] = x[c] + h * k3[c];
            velocity(data, n, slices, per_slice, y, t + h, k4);
            float *row = kept + 3 * ((int64_t)(m + 1) * particles + p);
            for (int c = 0; c < 3; c++) {
                x[c] = fold(x[c] + h / 6 * (k1[c] + 2 * k2[c] + 2 * k3[c] + k4[c]));
                row[c] = x[c];
            }
        }
    }
}
