/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines for the property tests of the allocator: see random_machine.h. */
#include "tests/unit/random_machine.h"

#include <inttypes.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "tests/unit/unit.h"

static int below(uint64_t *state, int limit)
{
    return (int)weft_random_below(state, (uint64_t)limit);
}

static bool chance(uint64_t *state, int percent)
{
    return below(state, 100) < percent;
}

static void both(struct oracle_machine *m, int i, int j, int64_t link)
{
    m->link[i][j] = m->link[j][i] = link;
}

/* Switch pairs, quads, two sockets; numbers shuffled later by the device order. */
static void tree_distances(struct oracle_machine *m, int pair, int quad, int half)
{
    for (int i = 0; i < m->n; i++) {
        for (int j = 0; j < m->n; j++) {
            m->dist[i][j] = i / 2 == j / 2   ? pair
                            : i / 4 == j / 4 ? quad
                            : i / 8 == j / 8 ? half
                                             : 5;
        }
    }
}

static void random_distances(uint64_t *s, struct oracle_machine *m)
{
    for (int i = 0; i < m->n; i++) {
        for (int j = i + 1; j < m->n; j++) {
            m->dist[i][j] = m->dist[j][i] = below(s, 6);
        }
    }
}

static void links(uint64_t *s, struct oracle_machine *m)
{
    const int kind = below(s, 7);
    const int density = 10 + below(s, 90);
    for (int i = 0; i < m->n; i++) {
        for (int j = i + 1; j < m->n; j++) {
            const int64_t random = INT64_C(25000) * (1 + below(s, 3));
            switch (kind) {
            case 0: /* none */
                both(m, i, j, 0);
                break;
            case 1: /* all to all through switches */
                both(m, i, j, 450000);
                break;
            case 2: /* bridged pairs */
                both(m, i, j, i / 2 == j / 2 ? 300000 : 0);
                break;
            case 3: /* quads, and a ring through them */
                both(m, i, j, i / 4 == j / 4 ? 25000 * (1 + (i + j) % 2) : j - i == 4 ? 50000 : 0);
                break;
            case 4: /* islands of different strength */
                both(m, i, j, i % 3 == j % 3 ? random : 0);
                break;
            default:
                both(m, i, j, chance(s, density) ? random : 0);
                break;
            }
        }
    }
}

/* One device with some of its links down; one direction of a pair worse than the other. */
static void degrade(uint64_t *s, struct oracle_machine *m)
{
    if (chance(s, 25)) {
        const int bad = below(s, m->n);
        for (int j = 0; j < m->n; j++) {
            both(m, bad, j, m->link[bad][j] / 2);
        }
    }
    for (int times = below(s, 3); times > 0; times--) {
        const int i = below(s, m->n);
        const int j = below(s, m->n);
        if (i != j) {
            m->link[i][j] = chance(s, 50) ? 0 : m->link[i][j] / 2;
            m->dist[i][j] = below(s, 7) - 1;
        }
    }
}

static void places(uint64_t *s, struct oracle_machine *m)
{
    const int known = below(s, 4); /* none, some, all, all */
    const int nodes = 1 + below(s, 4);
    for (int i = 0; i < m->n; i++) {
        const bool know = known > 1 || (known == 1 && chance(s, 60));
        m->numa[i] = know ? i * nodes / m->n : -1;
        m->socket[i] = know && chance(s, 90) ? m->numa[i] / 2 : -1;
        if (chance(s, 5)) {
            m->numa[i] = below(s, 3);
        }
    }
}

static void identity(uint64_t *s, struct oracle_machine *m)
{
    const bool all_bdf = chance(s, 80);
    const bool partitions = chance(s, 15);
    int shuffled[ORACLE_DEVICES_MAX] = {0};
    for (int i = 0; i < m->n; i++) {
        const int j = below(s, i + 1);
        shuffled[i] = shuffled[j];
        shuffled[j] = i;
    }
    for (int i = 0; i < m->n; i++) {
        const int slot = partitions ? i / 2 : shuffled[i];
        m->index[i] = shuffled[i];
        m->parent[i] = partitions ? slot : -1;
        m->partition[i] = partitions && chance(s, 80) ? i % 2 : 0;
        m->bdf[i] =
            all_bdf || chance(s, 50) ? (int64_t)(slot / 8) << 32 | (slot * 7 % 256) << 16 : -1;
        m->healthy[i] = !chance(s, 8);
        (void)snprintf(m->id[i], sizeof(m->id[i]), "GPU-%c%d", 'z' - i, below(s, 100));
    }
}

/* ---- machines in equal blocks ---- */

/* A value for devices of one block, of one half of the blocks, or of the machine. */
struct levels {
    int block, half, all;
};

static int at_level(const struct levels *l, const int *block, int half, int i, int j)
{
    if (block[i] == block[j]) {
        return l->block;
    }
    return block[i] / half == block[j] / half ? l->half : l->all;
}

/* Places by device, block or half; or unknown. */
static void block_places(uint64_t *s, const int *block, int half, int n, int *places)
{
    const int kind = below(s, 4);
    for (int i = 0; i < n; i++) {
        places[i] = kind == 0 ? -1 : kind == 1 ? block[i] : kind == 2 ? block[i] / half : i;
    }
}

static void block_nics(uint64_t *s, struct oracle_machine *m, const int *block)
{
    const int kind = below(s, 3); /* one a block, one for every second block, one for all blocks */
    for (int i = 0; i < m->n; i++) {
        for (int k = 0; k < m->nics; k++) {
            const bool near = kind == 0 ? block[i] == k : kind == 1 ? block[i] / 2 == k : k == 0;
            m->nic_dist[i][k] = near ? 1 : 4;
        }
    }
}

/* GPUs in partitions, and the like: whole blocks of devices that can be swapped, in any order of
 * numbers; then some of it is disturbed. */
static void block_machine(uint64_t *s, struct oracle_machine *m)
{
    const int size = 2 + below(s, 3);
    const int half = 1 + below(s, 3);
    const int blocks = (m->n + size - 1) / size;
    const bool interleaved = chance(s, 40);
    const struct levels links = {25000 * below(s, 4), 25000 * below(s, 3), 25000 * below(s, 2)};
    const struct levels dist = {below(s, 3), 3 + below(s, 2), 4 + below(s, 2)};
    int block[ORACLE_DEVICES_MAX] = {0};
    for (int i = 0; i < m->n; i++) {
        block[i] = interleaved ? i % blocks : i / size;
    }
    for (int i = 0; i < m->n; i++) {
        for (int j = 0; j < m->n; j++) {
            m->link[i][j] = i == j ? 0 : at_level(&links, block, half, i, j);
            m->dist[i][j] = at_level(&dist, block, half, i, j);
        }
        m->index[i] = i;
        m->parent[i] = block[i];
        m->partition[i] = interleaved ? i / blocks : i % size;
        m->bdf[i] = (int64_t)(block[i] + 3) << 16;
        m->healthy[i] = !chance(s, 4);
        (void)snprintf(m->id[i], sizeof(m->id[i]), "part-%c%d", 'z' - i, below(s, 100));
    }
    block_places(s, block, half, m->n, m->numa);
    block_places(s, block, half, m->n, m->socket);
    block_nics(s, m, block);
    for (int i = 0; chance(s, 50) && i < m->n; i++) {
        m->parent[i] = -1;
        m->bdf[i] = (int64_t)i << 16;
        m->partition[i] = 0;
    }
}

void random_machine(uint64_t *s, int n, struct oracle_machine *m)
{
    *m = (struct oracle_machine){.n = n, .nics = below(s, 5)};
    if (chance(s, 30)) {
        block_machine(s, m);
        if (chance(s, 25)) {
            degrade(s, m);
        }
        return;
    }
    if (chance(s, 60)) {
        tree_distances(m, below(s, 4), 2 + below(s, 3), 4);
    } else {
        random_distances(s, m);
    }
    links(s, m);
    places(s, m);
    identity(s, m);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < m->nics; k++) {
            m->nic_dist[i][k] = chance(s, 50) ? i * m->nics / n == k ? 1 : 4 : below(s, 7) - 1;
        }
    }
    degrade(s, m);
}

/* ---- to JSON ---- */

static void write_device(struct weft_buf *b, const struct oracle_machine *m, int i)
{
    (void)weft_buf_printf(b, "%s{\"id\":\"%s\",\"index\":%d,\"numa_node\":%d,\"socket\":%d,",
                          i > 0 ? "," : "", m->id[i], m->index[i], m->numa[i], m->socket[i]);
    if (m->bdf[i] >= 0) {
        (void)weft_buf_printf(b, "\"bdf\":\"%04x:%02x:00.0\",", (unsigned)(m->bdf[i] >> 32),
                              (unsigned)(m->bdf[i] >> 16 & 255));
    }
    (void)weft_buf_printf(b, "\"parent\":%d,\"partition\":%d,\"healthy\":%s}", m->parent[i],
                          m->partition[i], m->healthy[i] ? "true" : "false");
}

static const char *word(int distance)
{
    static const char *const words[] = {"null",    "\"PSB\"",  "\"PIX\"", "\"PXB\"",
                                        "\"PHB\"", "\"NODE\"", "\"SYS\""};
    return words[distance + 1];
}

static void write_row(struct weft_buf *b, const struct oracle_machine *m, const char *key, int i)
{
    const bool links = strcmp(key, "bandwidth") == 0;
    const bool nics = strcmp(key, "nic_distance") == 0;
    (void)weft_buf_puts(b, i > 0 ? ",[" : "[");
    for (int j = 0; j < (nics ? m->nics : m->n); j++) {
        (void)weft_buf_puts(b, j > 0 ? "," : "");
        if (links) {
            (void)weft_buf_printf(b, "%" PRId64, m->link[i][j]);
        } else {
            (void)weft_buf_puts(b, word(nics ? m->nic_dist[i][j] : m->dist[i][j]));
        }
    }
    (void)weft_buf_putc(b, ']');
}

void random_machine_json(const struct oracle_machine *m, struct weft_buf *b)
{
    static const char *const matrices[] = {"bandwidth", "distance", "nic_distance"};
    (void)weft_buf_puts(b, "{\"weft_machine\":1,\"devices\":[");
    for (int i = 0; i < m->n; i++) {
        write_device(b, m, i);
    }
    (void)weft_buf_puts(b, "],\"nics\":[");
    for (int k = 0; k < m->nics; k++) {
        (void)weft_buf_printf(b, "%s{\"name\":\"n%d\"}", k > 0 ? "," : "", k);
    }
    for (size_t at = 0; at < WEFT_ARRAY_LEN(matrices); at++) {
        (void)weft_buf_printf(b, "],\"%s\":[", matrices[at]);
        for (int i = 0; i < m->n; i++) {
            write_row(b, m, matrices[at], i);
        }
    }
    (void)weft_buf_puts(b, "]}");
}
