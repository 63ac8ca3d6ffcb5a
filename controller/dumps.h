/* SPDX-License-Identifier: Apache-2.0 */
/* The switch graphs that file sources give: read when the file changed, and the last good one kept
 * when a new one cannot be read or is only a part. Blocking reads of files; one thread. */
#ifndef WEFT_CONTROLLER_DUMPS_H
#define WEFT_CONTROLLER_DUMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/source/config.h"

struct weft_fabric;

struct weft_dump {
    char *path;                 /* NULL: the source has no file */
    struct weft_fabric *fabric; /* the last good one, or NULL */
    uint64_t stamp;             /* of the file that was last looked at */
    struct weft_error error;    /* why the newest file is not in use; code 0: it is */
};

struct weft_dumps {
    struct weft_dump items[WEFT_CONFIG_SOURCES_MAX];
    size_t count;
};

void weft_dumps_done(struct weft_dumps *dumps);
/* Takes the files that config names; graphs of files that stay are kept. -ENOMEM. */
int weft_dumps_configure(struct weft_dumps *dumps, const struct weft_config *config)
    __attribute__((warn_unused_result));
/* Reads what has changed on disk since the last look. true if something did. */
bool weft_dumps_refresh(struct weft_dumps *dumps);
/* Fills fabrics (room for WEFT_CONFIG_SOURCES_MAX). -ENODATA if a source has no good graph at all:
 * then nothing may be decided. */
int weft_dumps_fabrics(const struct weft_dumps *dumps, const struct weft_fabric **fabrics,
                       struct weft_error *err) __attribute__((warn_unused_result));

#endif
