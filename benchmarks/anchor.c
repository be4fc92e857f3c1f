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

// The same for class-wise errors: labels by alias tables, `cell` is n x K, `starts` has K + 1.
void classwise(const uint32_t *threshold, const int32_t *other, const int32_t *cell,
               const int64_t *starts, const double *sums, int64_t n, int64_t k, int64_t b,
               uint64_t seed, double *out) {
    int32_t *events = malloc(starts[k] * sizeof *events);
    for (int64_t r = 0; r < b; r++) {
        uint64_t key = mix(seed + mix(r + 1));
        memset(events, 0, starts[k] * sizeof *events);
        for (int64_t i = 0; i < n; i++) {
            uint64_t z = mix(key + i * 0x9e3779b97f4a7c15ULL);
            int64_t j = ((z >> 32) * k) >> 32, at = i * k + j;
            events[cell[i * k + ((uint32_t)z < threshold[at] ? j : other[at])]]++;
        }
        double total = 0;
        for (int64_t c = 0; c < starts[k]; c++) total += fabs(events[c] - sums[c]);
        out[r] = total / n / k;
    }
    free(events);
}

// Resampled rows of a two-class ECE in fixed bins: Poisson counts from 16 random bits, 256
// replicates side by side, 32-bit sums, totals as they fall (not made n). With `hit`, rows keep
// their label; without, a count for each label. `b` is a multiple of 256.
enum { TILE = 256, LEVELS = 7 };

static void thresholds(double rate, uint16_t *t) {
    double mass = exp(-rate), below = 0;
    for (int j = 0; j < LEVELS; mass *= rate / ++j) {
        below += mass;
        t[j] = below * 65536 > 65535 ? 65535 : below * 65536;
    }
}

static inline void counts(const uint16_t *t, uint64_t counter, uint16_t *count) {
    uint64_t words[TILE / 4];
    uint16_t x[TILE];
    uint16_t t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3], t4 = t[4], t5 = t[5], t6 = t[6];
    for (int q = 0; q < TILE / 4; q++) words[q] = mix(counter + q * 0x9e3779b97f4a7c15ULL);
    memcpy(x, words, sizeof x);
    for (int q = 0; q < TILE; q++)
        count[q] = (uint16_t)(x[q] > t0) + (uint16_t)(x[q] > t1) + (uint16_t)(x[q] > t2)
                   + (uint16_t)(x[q] > t3) + (uint16_t)(x[q] > t4) + (uint16_t)(x[q] > t5)
                   + (uint16_t)(x[q] > t6);
}

void tile(const double *p, const uint8_t *hit, const int64_t *starts, int64_t n, int64_t n_cells,
          int64_t b, uint64_t seed, double *out) {
    uint16_t(*t)[2][LEVELS] = malloc(n * sizeof *t);
    for (int64_t i = 0; i < n; i++) {
        thresholds(hit ? 1 : p[i], t[i][0]);
        if (!hit) thresholds(1 - p[i], t[i][1]);
    }
    for (int64_t r = 0; r < b; r += TILE) {
        uint64_t key = mix(seed + mix(r + 1));
        uint32_t total[TILE] = {0};
        float error[TILE] = {0};
        for (int64_t c = 0; c < n_cells; c++) {
            float gap[TILE] = {0};
            for (int64_t i = starts[c]; i < starts[c + 1]; i++) {
                uint16_t y[TILE], m[TILE];
                uint64_t counter = key + i * (TILE / 2) * 0x9e3779b97f4a7c15ULL;
                counts(t[i][0], counter, y);
                if (hit) {
                    float residual = p[i] - hit[i];
                    for (int q = 0; q < TILE; q++) gap[q] += residual * y[q], total[q] += y[q];
                    continue;
                }
                counts(t[i][1], counter + (TILE / 4) * 0x9e3779b97f4a7c15ULL, m);
                float pf = p[i];
                for (int q = 0; q < TILE; q++) {
                    uint16_t sum = m[q] + y[q];
                    gap[q] += pf * sum - y[q];
                    total[q] += sum;
                }
            }
            for (int q = 0; q < TILE; q++) error[q] += fabsf(gap[q]);
        }
        for (int q = 0; q < TILE; q++) out[r + q] = error[q] / total[q];
    }
    free(t);
}

// The same for K labels: Poisson counts of every (row, label). Class-wise with `cell`, n x K, of
// `n_cells` in all; without, total variation over the cells that `starts` ends, rows grouped.
void tile_classes(const double *p, const int32_t *cell, const int64_t *starts, int64_t n,
                  int64_t n_cells, int64_t k, int64_t b, uint64_t seed, double *out) {
    uint16_t(*t)[LEVELS] = malloc(n * k * sizeof *t);
    float(*gap)[TILE] = malloc((cell ? n_cells : k) * sizeof *gap);
    uint16_t(*y)[TILE] = malloc(k * sizeof *y);
    for (int64_t i = 0; i < n * k; i++) thresholds(p[i], t[i]);
    for (int64_t r = 0; r < b; r += TILE) {
        uint64_t key = mix(seed + mix(r + 1));
        uint32_t total[TILE] = {0};
        float error[TILE] = {0};
        int64_t at = 0;
        if (cell) memset(gap, 0, n_cells * sizeof *gap);
        for (int64_t i = 0; i < n; i++) {
            uint16_t sum[TILE] = {0};
            if (!cell && i == starts[at]) memset(gap, 0, k * sizeof *gap);
            for (int64_t j = 0; j < k; j++) {
                counts(t[i * k + j], key + (i * k + j) * (TILE / 4) * 0x9e3779b97f4a7c15ULL, y[j]);
                for (int q = 0; q < TILE; q++) sum[q] += y[j][q];
            }
            for (int q = 0; q < TILE; q++) total[q] += sum[q];
            for (int64_t j = 0; j < k; j++) {
                float *g = gap[cell ? cell[i * k + j] : j], pf = p[i * k + j];
                for (int q = 0; q < TILE; q++) g[q] += pf * sum[q] - y[j][q];
            }
            if (cell || i + 1 < starts[at + 1]) continue;
            at++;
            for (int64_t j = 0; j < k; j++)
                for (int q = 0; q < TILE; q++) error[q] += 0.5f * fabsf(gap[j][q]);
        }
        for (int64_t c = 0; cell && c < n_cells; c++)
            for (int q = 0; q < TILE; q++) error[q] += fabsf(gap[c][q]) / k;
        for (int q = 0; q < TILE; q++) out[r + q] = error[q] / total[q];
    }
    free(t), free(gap), free(y);
}

// How often each row and label is drawn: n pairs, the row and the uniform of its label from one
// word, the label by alias tables.
static void draw(const uint32_t *threshold, const int32_t *other, int64_t n, int64_t k,
                 uint64_t key, int32_t *count) {
    memset(count, 0, n * k * sizeof *count);
    for (int64_t j = 0; j < n; j++) {
        uint64_t z = mix(key + j * 0x9e3779b97f4a7c15ULL);
        int64_t i = ((z >> 32) * n) >> 32;
        uint64_t scaled = (uint64_t)(uint32_t)(z * 0x9e3779b97f4a7c15ULL >> 16) * k;
        int64_t at = i * k + (scaled >> 32);
        count[i * k + ((uint32_t)scaled < threshold[at] ? (int64_t)(scaled >> 32) : other[at])]++;
    }
}

// Resampled rows in equal-mass bins of each sample; rows sorted by p (the first of two classes).
void equal_mass(const double *p, const uint32_t *threshold, const int32_t *other, int64_t n,
                int64_t m, int64_t b, uint64_t seed, double *out) {
    int32_t(*count)[2] = malloc(n * sizeof *count);
    for (int64_t r = 0; r < b; r++) {
        draw(threshold, other, n, 2, mix(seed + mix(r + 1)), count[0]);
        double error = 0, gap = 0;
        int64_t total = 0, j = 1;
        for (int64_t i = 0; i < n; i++) {
            int64_t drawn = count[i][0] + count[i][1];
            gap += drawn * p[i] - count[i][0];
            total += drawn;
            if (total * m >= j * n && j < m) {
                error += fabs(gap);
                gap = 0;
                while (total * m >= j * n) j++;
            }
        }
        out[r] = (error + fabs(gap)) / n;
    }
    free(count);
}

// Resampled rows in a tree of each sample: the axis of largest variance is cut at its mean, nodes
// of at least `min_size` rows are cut.
void tree(const double *p, const uint32_t *threshold, const int32_t *other, int64_t n, int64_t k,
          int64_t min_size, int64_t b, uint64_t seed, double *out) {
    int32_t *count = malloc(n * k * sizeof *count), *weight = malloc(n * sizeof *weight);
    int64_t *row = malloc(n * sizeof *row), *spare = malloc(n * sizeof *spare);
    int64_t(*stack)[2] = malloc((n + 1) * sizeof *stack);
    double *sum = malloc(k * sizeof *sum), *square = malloc(k * sizeof *square);
    for (int64_t r = 0; r < b; r++) {
        draw(threshold, other, n, k, mix(seed + mix(r + 1)), count);
        int64_t occupied = 0, waiting = 1;
        for (int64_t i = 0; i < n; i++) {
            weight[i] = 0;
            for (int64_t j = 0; j < k; j++) weight[i] += count[i * k + j];
            if (weight[i]) row[occupied++] = i;
        }
        stack[0][0] = 0, stack[0][1] = occupied;
        double error = 0;
        while (waiting) {
            int64_t first = stack[--waiting][0], last = stack[waiting][1], size = 0, right = 0;
            int64_t middle = first, axis = 0;
            for (int64_t j = 0; j < k; j++) sum[j] = square[j] = 0;
            for (int64_t a = first; a < last; a++) {
                double w = weight[row[a]];
                size += weight[row[a]];
                for (int64_t j = 0; j < k; j++) {
                    double v = p[row[a] * k + j];
                    sum[j] += w * v;
                    square[j] += w * v * v;
                }
            }
            if (size >= min_size) {
                double widest = -1;
                for (int64_t j = 0; j < k; j++) {
                    double v = square[j] / size - sum[j] * sum[j] / size / size;
                    if (v > widest) widest = v, axis = j;
                }
                double centre = sum[axis] / size;
                for (int64_t a = first; a < last; a++)
                    if (p[row[a] * k + axis] < centre) row[middle++] = row[a];
                    else spare[right++] = row[a];
                memcpy(row + middle, spare, right * sizeof *row);
            }
            if (middle > first && right) {
                stack[waiting][0] = middle, stack[waiting++][1] = last;
                stack[waiting][0] = first, stack[waiting++][1] = middle;
                continue;
            }
            for (int64_t a = first; a < last; a++)
                for (int64_t j = 0; j < k; j++) sum[j] -= count[row[a] * k + j];
            for (int64_t j = 0; j < k; j++) error += fabs(sum[j]);
        }
        out[r] = error / 2 / n;
    }
    free(count), free(weight), free(row), free(spare), free(stack), free(sum), free(square);
}
