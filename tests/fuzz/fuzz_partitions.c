/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as OpenSM's partitions.conf: what is read is sorted and of P_Keys without their
 * membership bit; what is refused is explained. */
#include <stdlib.h>

#include "pkg/fabric/partitions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *p = NULL;
    struct weft_error err = {0};
    if (weft_parse_ib_partitions((const char *)data, size, "fuzz", &p, &err) < 0) {
        if (err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < p->count; i++) {
        const struct weft_partition *item = &p->items[i];
        if (item->pkey > 0x7fff || (item->name[0] == '\0' && item->line == 0)) {
            abort();
        }
        for (size_t k = 1; k < item->count; k++) {
            if (item->guids[k - 1] >= item->guids[k]) {
                abort();
            }
        }
    }
    return 0;
}
