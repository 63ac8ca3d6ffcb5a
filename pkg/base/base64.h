/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4, padded). Values only; any thread. */
#ifndef WEFT_BASE_BASE64_H
#define WEFT_BASE_BASE64_H

#include <stddef.h>

/* Decodes strictly: padding as it must be, no other characters, but white space at both ends and
 * line ends inside are passed over (people wrap lines). *ret_bytes is owned and NUL-terminated
 * after *ret_len bytes. 0, -EINVAL, -ENOMEM. */
int weft_base64_decode(const char *text, size_t len, char **ret_bytes, size_t *ret_len)
    __attribute__((warn_unused_result));
/* Owned text; NULL without memory. */
char *weft_base64_encode(const char *bytes, size_t len) __attribute__((warn_unused_result));

#endif
