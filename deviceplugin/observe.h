/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's pages: /metrics, /livez, /readyz, /debug/allocations, /debug/machine, /debug/config.
 * Loop thread. */
#ifndef WEFT_DEVICEPLUGIN_OBSERVE_H
#define WEFT_DEVICEPLUGIN_OBSERVE_H

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_endpoints;
struct weft_loop;
struct weft_options;
struct weft_observe;
struct weft_source;
struct weft_stats;

/* All borrowed; must live as long. */
struct weft_observe_options {
    struct weft_loop *loop;
    const char *listen; /* as in weft_http_options */
    const struct weft_endpoints *endpoints;
    const struct weft_options *options; /* as they are now; NULL: not shown */
    const struct weft_source *source;
    const struct weft_stats *stats;
};

/* Errors of weft_http_new. */
int weft_observe_new(const struct weft_observe_options *options, struct weft_observe **ret_observe,
                     struct weft_error *err) __attribute__((warn_unused_result));
void weft_observe_free(struct weft_observe *observe);
WEFT_DEFINE_AUTO(struct weft_observe, weft_observe_free)

#endif
