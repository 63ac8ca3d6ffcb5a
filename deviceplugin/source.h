/* SPDX-License-Identifier: Apache-2.0 */
/* Where the machine comes from: the vendors' backends, asked by the vendor thread (vendor.h), or a
 * recorded file that is watched, and looked at on request. A file that became unreadable or invalid
 * keeps the last good machine and is named once per change. Loop thread; reads the file there,
 * which is small and local. */
#ifndef WEFT_DEVICEPLUGIN_SOURCE_H
#define WEFT_DEVICEPLUGIN_SOURCE_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_backend_watch;
struct weft_health_settings;
struct weft_loop;
struct weft_machine;
struct weft_source;
struct weft_stats;
struct weft_options;

struct weft_source_options {
    struct weft_loop *loop;
    const struct weft_options *options; /* machine (NULL: ask the vendors) and what goes with it */
    struct weft_stats *stats;           /* changes of health are counted there, and logged */
    /* A later machine that differs; the callee owns it. */
    void (*changed)(void *data, struct weft_machine *machine);
    void *data;
};

/* Reads the machine; the caller owns *ret_machine. Where the vendors are asked it is NULL: the
 * first one comes by changed. Errors of weft_machine_load and weft_vendor_new. */
int weft_source_new(const struct weft_source_options *options, struct weft_source **ret_source,
                    struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* True if the vendor thread was left behind inside a vendor's library (weft_vendor_end). */
bool weft_source_end(struct weft_source *source);
void weft_source_free(struct weft_source *source);
WEFT_DEFINE_AUTO(struct weft_source, weft_source_free)

/* Looks at the file now, whether it seems changed or not; asks the vendor thread to look again, by
 * a library that is loaded anew where some device is not healthy. */
void weft_source_rescan(struct weft_source *source);
/* Other settings from now on (copied); what a file says of health is so without any. */
void weft_source_configure(struct weft_source *source, const struct weft_health_settings *health);
/* What calls into the vendor's library took; NULL where a file is read. */
const struct weft_backend_watch *weft_source_watch(const struct weft_source *source);

#endif
