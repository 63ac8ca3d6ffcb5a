/* SPDX-License-Identifier: Apache-2.0 */
/* What `amd-smi topology` (text or JSON) and `rocm-smi --showtopo` say, as tables over the GPUs;
 * what that means for a machine is read-amd-smi.c's business. */
#ifndef WEFT_MACHINE_AMD_TOPO_INTERNAL_H
#define WEFT_MACHINE_AMD_TOPO_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"

/* The tables that matter here; a set of them is a bit mask of 1 << table. */
enum weft_amd_table {
    WEFT_AMD_WEIGHT,    /* checked, but of no use beside hops */
    WEFT_AMD_HOPS,      /* links on the way: 1 for a direct one */
    WEFT_AMD_TYPE,      /* enum weft_amd_link */
    WEFT_AMD_BANDWIDTH, /* MB/s one way, of all links of the pair */
    WEFT_AMD_ACCESS,    /* 1 may reach, 2 may not */
    WEFT_AMD_OTHER,     /* coherency, atomics, DMA: names the devices only */
    WEFT_AMD_TABLE_COUNT
};

enum weft_amd_link {
    WEFT_AMD_LINK_UNKNOWN,
    WEFT_AMD_LINK_SELF,
    WEFT_AMD_LINK_XGMI,
    WEFT_AMD_LINK_PCIE
};

enum {
    WEFT_AMD_ACCESS_YES = 1,
    WEFT_AMD_ACCESS_NO = 2,
    WEFT_AMD_NUMA_UNSAID = -2, /* -1 is what the programs print for unknown */
};

struct weft_amd_gpu {
    int index;
    struct weft_bdf bdf;
    int numa_node, numa_affinity; /* WEFT_AMD_NUMA_UNSAID, else as printed */
    unsigned rows;                /* set of tables that have its row whole */
    unsigned table_line;          /* the header of the last table with a row of it */
};

struct weft_amd_topo {
    const char *file;
    size_t count, cap;
    struct weft_amd_gpu *gpus;
    unsigned tables; /* set of tables whose header was read */
    /* count x count each, row-major; 0 is "not said"; NULL until the first table */
    uint64_t *cells[WEFT_AMD_TABLE_COUNT];
    bool cut; /* the text ends inside a line or a table */
    unsigned last_line;
    unsigned error_line; /* the first line in which the program reported a failure, 0 none */
    char error_text[128];
};

int weft_amd_parse_text(const char *text, size_t len, const char *file,
                        struct weft_amd_topo *ret_topo, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_amd_parse_json(const char *text, size_t len, const char *file,
                        struct weft_amd_topo *ret_topo, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_amd_topo_done(struct weft_amd_topo *topo);
WEFT_DEFINE_AUTO_VALUE(struct weft_amd_topo, weft_amd_topo_done)

/* For both parsers. Adds a GPU; 0, -EFBIG, -ENOMEM. */
int weft_amd_add_gpu(struct weft_amd_topo *topo, int index, const struct weft_bdf *bdf)
    __attribute__((warn_unused_result));
/* Makes the cells of all tables, once the GPUs are known; 0 or -ENOMEM. */
int weft_amd_make_cells(struct weft_amd_topo *topo) __attribute__((warn_unused_result));
/* Reads one cell's word into its number; false where the table has no such word. */
bool weft_amd_read_cell(enum weft_amd_table table, const char *word, size_t len, uint64_t *ret);

#endif
