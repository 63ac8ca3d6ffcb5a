/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of source a file is, by what only that kind has in it. Pure. */
#ifndef WEFT_SOURCE_GUESS_H
#define WEFT_SOURCE_GUESS_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/source/config.h"

/* as much of a file as a guess looks at */
enum { WEFT_SOURCE_GUESS_MAX = 65536 };

/* The kind of the file whose beginning text is; name is for the message. Errors: -EINVAL if nothing
 * or more than one kind fits: then somebody has to say. */
int weft_source_guess(const char *text, size_t len, const char *name,
                      enum weft_source_kind *ret_kind, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
