/* SPDX-License-Identifier: Apache-2.0 */
/* tar archives in memory: ustar as POSIX.1-2017 (pax) defines it, with the long names of pax and of
 * GNU tar, plain or compressed with gzip. Small on purpose: libarchive would bring ten libraries
 * into a plugin that keeps to 8 MB, zlib is there already. Pure; any thread. */
#ifndef WEFT_MACHINE_TAR_H
#define WEFT_MACHINE_TAR_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"

enum {
    WEFT_TAR_NAME_MAX = 4096, /* with its NUL */
};

struct weft_tar_entry {
    const char *path;   /* as the archive has it; borrowed for the call */
    const char *target; /* of a symbolic or hard link, else NULL */
    const char *bytes;  /* of a regular file */
    size_t len;
};

/* Called for each regular file and each link; 0, or a negative code that ends the reading. */
typedef int weft_tar_visit(void *context, const struct weft_tar_entry *entry);

bool weft_tar_is(const char *bytes, size_t len);
bool weft_gzip_is(const char *bytes, size_t len);

/* Visits what is whole. 0; 1 if the archive ends too early (after all that is whole was visited);
 * -EINVAL with "name: offset 1024: reason"; or what visit returned. */
int weft_tar_read(const char *bytes, size_t len, const char *name, weft_tar_visit *visit,
                  void *context, struct weft_error *err) __attribute__((warn_unused_result));
/* Unpacks into owned *ret_bytes, at most max bytes. 0; 1 if the data ends too early, with what
 * there was; -EINVAL, -EFBIG, -ENOMEM. */
int weft_gunzip(const char *bytes, size_t len, size_t max, char **ret_bytes, size_t *ret_len,
                struct weft_error *err) __attribute__((warn_unused_result));

#endif
