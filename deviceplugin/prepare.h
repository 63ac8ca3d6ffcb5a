/* SPDX-License-Identifier: Apache-2.0 */
/* Between a machine and what is advertised: makes ready on the host what answers will name, so that
 * no answer names what is not there. Looks for the features' nodes, writes the CDI files. Where
 * that cannot be done, the devices are unhealthy with the reason, and it is tried again. With the
 * default strategy and no features it does nothing. Loop thread; a few local files. */
#ifndef WEFT_DEVICEPLUGIN_PREPARE_H
#define WEFT_DEVICEPLUGIN_PREPARE_H

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_extras;
struct weft_loop;
struct weft_machine;
struct weft_options;
struct weft_prepare;

struct weft_prepare_options {
    struct weft_loop *loop;
    const struct weft_options *options; /* respond, host_root, container_driver_root */
    /* The machine that may be advertised; the callee owns it. Comes during weft_prepare_use, and
     * again when something that was missing is there. */
    void (*ready)(void *data, struct weft_machine *machine);
    void *data;
};

int weft_prepare_new(const struct weft_prepare_options *options, struct weft_prepare **ret_prepare,
                     struct weft_error *err) __attribute__((warn_unused_result));
void weft_prepare_free(struct weft_prepare *prepare);
WEFT_DEFINE_AUTO(struct weft_prepare, weft_prepare_free)

/* Takes the machine over. */
void weft_prepare_use(struct weft_prepare *prepare, struct weft_machine *machine);
/* The options have changed: looks again for the machine that was given last, if that matters. */
void weft_prepare_again(struct weft_prepare *prepare);
/* What was found for the machine that was given last; borrowed, the pointer stays the same. */
const struct weft_extras *weft_prepare_extras(const struct weft_prepare *prepare);

#endif
