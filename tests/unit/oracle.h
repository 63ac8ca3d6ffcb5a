/* SPDX-License-Identifier: Apache-2.0 */
/* A second, slow reading of allocation.md for tests: every candidate set, every bipartition, plain
 * matrices of raw readings. It shares no code and no data structure with pkg/machine and
 * pkg/allocator, and must stay so: its only use is to disagree. */
#ifndef WEFT_TESTS_UNIT_ORACLE_H
#define WEFT_TESTS_UNIT_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum { ORACLE_DEVICES_MAX = 24, ORACLE_NICS_MAX = 8 };

struct oracle_machine {
    int n, nics;
    int64_t link[ORACLE_DEVICES_MAX][ORACLE_DEVICES_MAX]; /* as device i says it, MB/s */
    int dist[ORACLE_DEVICES_MAX][ORACLE_DEVICES_MAX];     /* as device i says it; -1 unknown */
    int nic_dist[ORACLE_DEVICES_MAX][ORACLE_NICS_MAX];
    int numa[ORACLE_DEVICES_MAX];   /* -1 unknown */
    int socket[ORACLE_DEVICES_MAX]; /* -1 unknown */
    int parent[ORACLE_DEVICES_MAX]; /* -1 whole */
    int partition[ORACLE_DEVICES_MAX];
    int index[ORACLE_DEVICES_MAX];
    int64_t bdf[ORACLE_DEVICES_MAX]; /* domain, bus, device, function in one number; -1 none */
    bool healthy[ORACLE_DEVICES_MAX];
    char id[ORACLE_DEVICES_MAX][32];
};

struct oracle_request {
    uint32_t available, required; /* bit = device number */
    int64_t size;
    bool packed;
    uint32_t except; /* a set that must not be the answer; 0: none */
};

struct oracle_answer {
    uint32_t set;
    /* entries 1, 2, 3, 4a, 4b, 5a, 5b, 6a, 6b, 7a, 7b as allocation.md counts them */
    int64_t entry[11];
};

void oracle_pick(const struct oracle_machine *m, const struct oracle_request *request,
                 struct oracle_answer *ret_answer);

/* Several ids a device: replica r of device i is bit r of ids[i]. */
struct oracle_sharing {
    int total[ORACLE_DEVICES_MAX];
    uint32_t available[ORACLE_DEVICES_MAX], required[ORACLE_DEVICES_MAX];
    int64_t size;
    bool packed, packed_sharing;
};

/* The ids that are given, likewise. */
void oracle_share(const struct oracle_machine *m, const struct oracle_sharing *request,
                  uint32_t *ret_ids);

#endif
