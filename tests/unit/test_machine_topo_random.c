/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices, written as `nvidia-smi topo -m` text in several layouts, must be read as B, T, N
 * and NUMA groups that this file works out itself from the cells, by allocation.md "Reading". */
#include <inttypes.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

enum { GPUS_MAX = 9, NICS_MAX = 4, WORD_MAX = 16 };

struct dump {
    int gpus, nics;
    bool has_numa, has_gpu_id;
    char cell[GPUS_MAX][GPUS_MAX + NICS_MAX][WORD_MAX];
    char cpu[GPUS_MAX][WORD_MAX];
    char numa[GPUS_MAX][WORD_MAX];
};

static const char *pick(uint64_t *s, const char *const *words, uint64_t count)
{
    return words[weft_random_below(s, count)];
}

static void random_cell(uint64_t *s, bool nic, char *cell)
{
    static const char *const words[] = {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
    const uint64_t kind = weft_random_below(s, 20);
    if (!nic && kind < 8) {
        (void)snprintf(cell, WORD_MAX, "NV%d", (int)weft_random_below(s, 19));
    } else if (kind == 19) {
        (void)snprintf(cell, WORD_MAX, "ERR");
    } else {
        (void)snprintf(cell, WORD_MAX, "%s", pick(s, words, WEFT_ARRAY_LEN(words)));
    }
}

static void random_dump(uint64_t *s, struct dump *d)
{
    static const char *const cpus[] = {"0-7", "8-15", "0,2,4", "3", "N/A"};
    static const char *const nodes[] = {"0", "1", "0,3-9", "N/A", "-1", "7"};
    *d = (struct dump){.gpus = 1 + (int)weft_random_below(s, GPUS_MAX),
                       .nics = (int)weft_random_below(s, NICS_MAX + 1),
                       .has_numa = weft_random_below(s, 4) > 0};
    d->has_gpu_id = d->has_numa && weft_random_below(s, 2) > 0;
    for (int i = 0; i < d->gpus; i++) {
        for (int j = 0; j < i; j++) {
            random_cell(s, false, d->cell[i][j]);
            memcpy(d->cell[j][i], d->cell[i][j], sizeof(d->cell[j][i]));
            if (weft_random_below(s, 8) == 0) {
                random_cell(s, false, d->cell[j][i]);
            }
        }
        (void)snprintf(d->cell[i][i], WORD_MAX, "X");
        for (int k = 0; k < d->nics; k++) {
            random_cell(s, true, d->cell[i][d->gpus + k]);
        }
        (void)snprintf(d->cpu[i], WORD_MAX, "%s", pick(s, cpus, WEFT_ARRAY_LEN(cpus)));
        (void)snprintf(d->numa[i], WORD_MAX, "%s", pick(s, nodes, WEFT_ARRAY_LEN(nodes)));
    }
}

/* ---- as text ---- */

enum layout { TABS, PADDED_TABS, BLANKS, MARKDOWN, DOUBLE_TABS, LAYOUT_COUNT };

static void put(struct weft_buf *b, enum layout layout, const char *word)
{
    switch (layout) {
    case TABS:
        (void)weft_buf_printf(b, "\t%s", word);
        break;
    case PADDED_TABS:
        (void)weft_buf_printf(b, "\t %s ", word);
        break;
    case BLANKS:
        (void)weft_buf_printf(b, "  %-14s", word);
        break;
    case MARKDOWN:
        (void)weft_buf_printf(b, " | %s", word);
        break;
    case DOUBLE_TABS:
        (void)weft_buf_printf(b, "\t\t%s", word);
        break;
    case LAYOUT_COUNT:
        break;
    }
}

static void write_dump(const struct dump *d, enum layout layout, struct weft_buf *b)
{
    char name[24];
    (void)weft_buf_puts(b, layout == MARKDOWN ? "|      " : "    ");
    for (int j = 0; j < d->gpus + d->nics; j++) {
        const bool nic = j >= d->gpus;
        (void)snprintf(name, sizeof(name), nic ? "mlx5_%d" : "GPU%d", nic ? j - d->gpus : j);
        put(b, layout, name);
    }
    put(b, layout, "CPU Affinity");
    put(b, layout, d->has_numa ? "NUMA Affinity" : "");
    put(b, layout, d->has_gpu_id ? "GPU NUMA ID" : "");
    (void)weft_buf_puts(b, layout == MARKDOWN ? " |\n|---|---|\n" : "\n");
    for (int i = 0; i < d->gpus; i++) {
        (void)weft_buf_printf(b, "%sGPU%d", layout == MARKDOWN ? "| " : "", i);
        for (int j = 0; j < d->gpus + d->nics; j++) {
            put(b, layout, d->cell[i][j]);
        }
        put(b, layout, d->cpu[i]);
        put(b, layout, d->has_numa ? d->numa[i] : "");
        put(b, layout, d->has_gpu_id ? "N/A" : "");
        (void)weft_buf_puts(b, layout == MARKDOWN ? " |\n" : "\n");
    }
}

/* ---- what it must mean ---- */

static int class_of(const char *word)
{
    static const char *const words[] = {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS"};
    for (int t = 0; t < 6; t++) {
        if (strcmp(word, words[t]) == 0) {
            return t;
        }
    }
    return strcmp(word, "SOC") == 0 ? 5 : -1;
}

static bool unknown(const char *label)
{
    return strcmp(label, "N/A") == 0 || strcmp(label, "-1") == 0 || label[0] == '\0';
}

static const char *label_of(const struct dump *d, int i)
{
    return d->has_numa ? d->numa[i] : d->cpu[i];
}

static bool same_node(const struct dump *d, int i, int j)
{
    return !unknown(label_of(d, i)) && strcmp(label_of(d, i), label_of(d, j)) == 0;
}

static int hidden(const struct dump *d, int i, int j)
{
    const bool known = !unknown(label_of(d, i)) && !unknown(label_of(d, j));
    const bool cpus = !unknown(d->cpu[i]) && strcmp(d->cpu[i], d->cpu[j]) == 0;
    int best = (known ? same_node(d, i, j) : cpus) ? 4 : 5;
    for (int k = d->gpus; k < d->gpus + d->nics; k++) {
        const int ni = class_of(d->cell[i][k]) < 0 ? 5 : class_of(d->cell[i][k]);
        const int nj = class_of(d->cell[j][k]) < 0 ? 5 : class_of(d->cell[j][k]);
        best = (ni > nj ? ni : nj) < best ? (ni > nj ? ni : nj) : best;
    }
    return best;
}

static void reading(const struct dump *d, int i, int j, int64_t *b, int *t)
{
    const char *word = d->cell[i][j];
    *b = 0;
    *t = class_of(word);
    if (strncmp(word, "NV", 2) == 0) {
        for (const char *digit = word + 2; *digit != '\0'; digit++) {
            *b = *b * 10 + (*digit - '0');
        }
        *b *= 25000;
        *t = hidden(d, i, j);
    } else if (*t < 0) {
        *t = same_node(d, i, j) ? 4 : 5;
    }
}

static bool agrees(const struct dump *d, const struct weft_machine *m)
{
    bool good = CHECK_INT(m->device_count, d->gpus) && CHECK_INT(m->nic_count, d->nics);
    for (int i = 0; good && i < d->gpus; i++) {
        for (int j = 0; good && j < d->gpus; j++) {
            int64_t bi = 0;
            int64_t bj = 0;
            int ti = 0;
            int tj = 0;
            reading(d, i, j, &bi, &ti);
            reading(d, j, i, &bj, &tj);
            const size_t x = (size_t)i;
            const size_t y = (size_t)j;
            good = i == j || (CHECK_INT(weft_machine_b(m, x, y), bi < bj ? bi : bj) &&
                              CHECK_INT(weft_machine_t(m, x, y), ti > tj ? ti : tj));
            const bool same = m->devices[x].numa_group >= 0 &&
                              m->devices[x].numa_group == m->devices[y].numa_group;
            good = good && CHECK_INT(same, same_node(d, i, j));
        }
        for (int k = 0; good && k < d->nics; k++) {
            const int n = class_of(d->cell[i][d->gpus + k]);
            good = CHECK_INT(weft_machine_n(m, (size_t)i, (size_t)k), n < 0 ? 5 : n);
        }
    }
    return good;
}

static void random_dumps(void)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        uint64_t s = seed * 6364136223846793005U;
        struct dump d;
        struct weft_error err = {0};
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        weft_auto(weft_buf_done) struct weft_buf text;
        weft_buf_init(&text, 1U << 16);
        random_dump(&s, &d);
        write_dump(&d, (enum layout)(seed % LAYOUT_COUNT), &text);
        const int rc = weft_machine_read(text.data, text.len, "random", &m, &err);
        CHECK_STR(err.message, "");
        if (rc < 0 || !agrees(&d, m)) {
            (void)fprintf(stderr, "seed %" PRIu64 "\n%s", seed, text.data);
            return;
        }
    }
}

WEFT_SUITE(machine_topo_random, {"1,000 random dumps", random_dumps})
