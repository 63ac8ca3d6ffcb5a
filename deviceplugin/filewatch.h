/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the file at a path becomes another one or gets other content. Symbolic links are
 * followed and each is watched, as a ConfigMap's files change by a link to a folder that is set
 * anew; so is the place of whatever is missing. Nothing is polled where the kernel tells of
 * changes; for a folder, and where it does not, the file is looked at every half minute. Loop
 * thread. */
#ifndef WEFT_DEVICEPLUGIN_FILEWATCH_H
#define WEFT_DEVICEPLUGIN_FILEWATCH_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_filewatch;
struct weft_loop;

/* changed(data) runs a tenth of a second after a change, which may be that the file is not there
 * any more; not for what was so when the watch was made. It is a hint: the file may change again
 * while it is read, and then it runs again. It must not free the watch. -ENOMEM, -ENAMETOOLONG. */
int weft_filewatch_new(struct weft_loop *loop, const char *path, void (*changed)(void *data),
                       void *data, struct weft_filewatch **ret_watch, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_filewatch_free(struct weft_filewatch *watch);
WEFT_DEFINE_AUTO(struct weft_filewatch, weft_filewatch_free)

/* Is the file looked at now and then, as the kernel does not tell? */
bool weft_filewatch_polls(const struct weft_filewatch *watch);

#endif
