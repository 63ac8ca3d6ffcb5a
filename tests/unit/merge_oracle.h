/* SPDX-License-Identifier: Apache-2.0 */
/* A second, slow reading of docs/tree.md, "Several sources", for tests: every pair is compared,
 * groups are texts. It shares no code with pkg/tree, and must stay so: its only use is to disagree.
 */
#ifndef WEFT_TESTS_UNIT_MERGE_ORACLE_H
#define WEFT_TESTS_UNIT_MERGE_ORACLE_H

#include <stdbool.h>

enum {
    MERGE_ORACLE_NODES = 14,
    MERGE_ORACLE_LEVELS = 4,
    MERGE_ORACLE_SOURCES = 4,
    MERGE_ORACLE_TEXT = 512
};

struct merge_oracle {
    int nodes, levels, sources;
    /* what a source calls the node's group of a level, closest first; -1: it does not know */
    int value[MERGE_ORACLE_SOURCES][MERGE_ORACLE_LEVELS][MERGE_ORACLE_NODES];
    int domain;    /* level, or -1 */
    char on_cross; /* 'w', 's' or 'l' */
    int crossings; /* out: groups that did not fit */
    /* out: names a node's group of a level, "" for none. Equal names, one group */
    char place[MERGE_ORACLE_LEVELS][MERGE_ORACLE_NODES][MERGE_ORACLE_TEXT];
};

void merge_oracle_run(struct merge_oracle *o);

#endif
