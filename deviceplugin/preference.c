/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/preference.h"

#include <inttypes.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/mem.h"

enum { IDS_SHOWN = 64 };

struct weft_kept_preference {
    int64_t at_ns;
    struct weft_preference what; /* its ids are gone */
    char ids[];                  /* the first ones, comma separated */
};

struct weft_kept_preference *weft_preference_keep(const struct weft_preference *preference,
                                                  int64_t at_ns)
{
    const size_t shown = preference->count < IDS_SHOWN ? preference->count : IDS_SHOWN;
    size_t bytes = 1;
    for (size_t i = 0; i < shown; i++) {
        bytes += strlen(preference->ids[i]) + 1;
    }
    struct weft_kept_preference *kept = weft_calloc(1, sizeof(*kept) + bytes);
    if (kept == NULL) {
        return NULL;
    }
    kept->at_ns = at_ns;
    kept->what = *preference;
    kept->what.ids = NULL;
    char *to = kept->ids;
    for (size_t i = 0; i < shown; i++) {
        const size_t len = strlen(preference->ids[i]);
        if (i > 0) {
            *to++ = ',';
        }
        memcpy(to, preference->ids[i], len);
        to += len;
    }
    return kept;
}

static void put_objective(struct weft_buf *line, const struct weft_objective *o)
{
    (void)weft_buf_printf(
        line,
        " components=%" PRIu32 " min_cut_mbps=%" PRIu64 " worst_tier=%d sockets=%" PRIu32
        " numa_nodes=%" PRIu32 " broken_groups=%" PRIu32 " leftover=%" PRIu32 " nic_near=%" PRIu32
        " nic_distinct=%" PRIu32 " bandwidth_mbps=%" PRIu64,
        o->components, o->min_cut_mbps, o->worst_tier, o->sockets, o->numa_nodes, o->broken_groups,
        o->leftover, o->nic_near, o->nic_distinct, o->bandwidth_mbps);
}

void weft_preference_write(const struct weft_kept_preference *kept, struct weft_buf *buf)
{
    const struct weft_preference *p = &kept->what;
    char when[WEFT_TIME_TEXT_MAX];
    (void)weft_buf_printf(buf, "ts=%s size=%" PRId64 " available=%zu required=%zu chosen=%s",
                          weft_time_format(kept->at_ns, when), p->size, p->available, p->required,
                          kept->ids);
    if (p->count > IDS_SHOWN) {
        (void)weft_buf_printf(buf, ",… %zu more", p->count - IDS_SHOWN);
    }
    if (!p->answered) {
        (void)weft_buf_puts(buf, " answer=none");
        return;
    }
    (void)weft_buf_printf(buf, " exact=%s", p->exact ? "true" : "false");
    if (p->scored) {
        put_objective(buf, &p->objective);
    }
}
