// What tuned C needs for the jobs of redraw.py. Built by it: gcc -O3 -march=native -shared -fPIC.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64 };

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Total variation ECE, rows grouped by cell, 64 replicates side by side, 32-bit uniforms.
// `cumulative` is n x (K - 1) in whole multiples of 2^-32, `sums` is L x K, `b` a multiple of 64.
void ladder(const uint32_t *cumulative, const int64_t *starts, const double *sums, int64_t n,
            int64_t n_cells, int64_t k, int64_t b, uint64_t seed, double *out) {
    int32_t *below = malloc((k + 1) * LANES * sizeof *below);
    uint32_t u[LANES];
    double gap[LANES];
    for (int64_t r = 0; r < b; r += LANES) {
        double *total = out + r;
        memset(total, 0, LANES * sizeof *total);
        for (int64_t c = 0; c < n_cells; c++) {
            memset(below, 0, k * LANES * sizeof *below);
            for (int q = 0; q < LANES; q++) below[k * LANES + q] = starts[c + 1] - starts[c];
            for (int64_t i = starts[c]; i < starts[c + 1]; i++) {
                uint64_t word = mix(seed + r * n + i);
                for (int q = 0; q < LANES / 2; q++) {
                    uint64_t z = mix(word + q * 0x9e3779b97f4a7c15ULL);
                    u[q] = z;
                    u[q + LANES / 2] = z >> 32;
                }
                for (int64_t j = 0; j < k - 1; j++) {
                    uint32_t threshold = cumulative[i * (k - 1) + j];
                    for (int q = 0; q < LANES; q++) below[(j + 1) * LANES + q] += u[q] < threshold;
                }
            }
            memset(gap, 0, sizeof gap);
            for (int64_t j = 0; j < k; j++)
                for (int q = 0; q < LANES; q++)
                    gap[q] += fabs(below[(j + 1) * LANES + q] - below[j * LANES + q]
                                   - sums[c * k + j]);
            for (int q = 0; q < LANES; q++) total[q] += gap[q];
        }
        for (int q = 0; q < LANES; q++) total[q] *= 0.5 / n;
    }
    free(below);
}

// The same, one replicate after the other, labels by alias tables: for many classes.
void alias(const uint32_t *threshold, const int32_t *other, const int64_t *starts,
           const double *sums, const double *untouched, int64_t n, int64_t n_cells, int64_t k,
           int64_t b, uint64_t seed, double *out) {
    double *seen = calloc(k, sizeof *seen);
    int32_t *label = malloc(n * sizeof *label);
    for (int64_t r = 0; r < b; r++) {
        uint64_t key = mix(seed + mix(r + 1));
        for (int64_t i = 0; i < n; i++) {
            uint64_t z = mix(key + i * 0x9e3779b97f4a7c15ULL);
            int64_t j = ((z >> 32) * k) >> 32, at = i * k + j;
            label[i] = (uint32_t)z < threshold[at] ? j : other[at];
        }
        double total = 0;
        for (int64_t c = 0; c < n_cells; c++) {
            total += untouched[c];
            for (int64_t i = starts[c]; i < starts[c + 1]; i++) seen[label[i]]++;
            for (int64_t i = starts[c]; i < starts[c + 1]; i++) {
                double s = sums[c * k + label[i]];
                total += fabs(seen[label[i]] - s) - s;
                seen[label[i]] = 0;
            }
        }
        out[r] = 0.5 * total / n;
    }
    free(seen);
    free(label);
}

// Alias tables (Vose 1991) of an n x K array.
void alias_tables(const double *probs, int64_t n, int64_t k, uint32_t *threshold, int32_t *other) {
    int64_t *stack = malloc(k * sizeof *stack);
    double *q = malloc(k * sizeof *q);
    for (int64_t i = 0; i < n; i++) {
        int64_t small = 0, large = k;
        for (int64_t j = 0; j < k; j++) {
            q[j] = probs[i * k + j] * k;
            threshold[i * k + j] = UINT32_MAX;
            other[i * k + j] = j;
            if (q[j] < 1) stack[small++] = j; else stack[--large] = j;
        }
        while (small > 0 && large < k) {
            int64_t s = stack[--small], l = stack[large];
            threshold[i * k + s] = q[s] * 4294967295.0;
            other[i * k + s] = l;
            q[l] -= 1 - q[s];
            if (q[l] < 1) { large++; stack[small++] = l; }
        }
    }
    free(stack);
    free(q);
}

// Consistency resampling of a two-class ECE: entries hold 32 bits of probability and 8 of the cell.
void packed(const uint64_t *entries, int64_t n, int64_t n_cells, int64_t b, uint64_t seed,
            double *out) {
    uint64_t buffer[512];
    int64_t gap[4][256];
    for (int64_t r = 0; r < b; r++) {
        uint64_t key = mix(seed + mix(r + 1));
        memset(gap, 0, sizeof gap);
        for (int64_t start = 0; start < n; start += 512) {
            int draws = n - start < 512 ? n - start : 512;
            for (int j = 0; j < 512; j++) {
                uint64_t z = mix(key + (start + j) * 0x9e3779b97f4a7c15ULL);
                buffer[j] = (((z >> 32) * n) & 0xffffffff00000000ULL) | (uint32_t)z;
            }
            for (int j = 0; j < draws; j++) {
                uint64_t entry = entries[buffer[j] >> 32];
                int64_t p = entry >> 8;
                gap[j & 3][entry & 255] += p - ((int64_t)((uint32_t)buffer[j] < p) << 32);
            }
        }
        double total = 0;
        for (int64_t c = 0; c < n_cells; c++)
            total += fabs((double)(gap[0][c] + gap[1][c] + gap[2][c] + gap[3][c]));
        out[r] = total / 4294967296.0 / n;
    }
}
