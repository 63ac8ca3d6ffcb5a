/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, with a cap, and atomic replacement. Blocking; for program starts and the CLI, not
 * for a loop thread under load. Any thread. */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <stddef.h>

#include "pkg/base/error.h"

/* Reads what is left of fd, at most max bytes, into owned, NUL-terminated *ret_text; *ret_len (may
 * be NULL) is its length without that NUL (content may hold NULs too). Errors: -errno of read,
 * -EFBIG over max, -ENOMEM. */
int weft_fd_read(int fd, size_t max, char **ret_text, size_t *ret_len, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same for a path; "-" is standard input. */
int weft_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                   struct weft_error *err) __attribute__((warn_unused_result));
/* The same for a regular file only, for a loop thread: a pipe or a device may never end. Errors:
 * also -EINVAL. */
int weft_file_read_regular(const char *path, size_t max, char **ret_text, size_t *ret_len,
                           struct weft_error *err) __attribute__((warn_unused_result));
/* Writes all bytes, retrying short writes and EINTR. */
int weft_fd_write(int fd, const void *bytes, size_t len, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Opens /dev/null for each of the three standard descriptors that the program was started without,
 * so that no socket gets its number: the log would be written into it. At the start of a program.
 * -errno. */
int weft_fd_keep_standard(void) __attribute__((warn_unused_result));
/* Opens an empty file base-0, base-1 … that no other process writes: replicas of a program in
 * containers all have the same pid. What a killed one left is used again. The caller frees the path
 * and closes the descriptor, which has the lock. -errno; -EBUSY after 16. */
int weft_file_temporary(const char *base, unsigned mode, char **ret_path, int *ret_fd,
                        struct weft_error *err) __attribute__((warn_unused_result));
/* Removes those that killed programs left; base is the path of weft_file_replace and ".tmp". */
void weft_file_remove_temporaries(const char *base);
/* Replaces path atomically: a temporary file beside it, fsync, rename. mode as for open. On
 * failure path is as it was. */
int weft_file_replace(const char *path, const void *bytes, size_t len, unsigned mode,
                      struct weft_error *err) __attribute__((warn_unused_result));

#endif
