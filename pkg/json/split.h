/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a JSON byte stream from the Kubernetes API into pieces that are parsed one at a time, so
 * that memory does not grow with the number of objects: the elements of a list's "items", or the
 * events of a watch. It finds the borders (strings, escapes, brackets) and checks the frame around
 * the pieces; what stands inside a piece is for weft_json_parse to judge. No I/O; one thread at a
 * time. */
#ifndef WEFT_JSON_SPLIT_H
#define WEFT_JSON_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_json_split;

enum weft_json_split_mode {
    /* One object: each element of its member "items" (an array of objects, or null), and its
     * member "metadata", wherever it stands. Other members are passed over. */
    WEFT_JSON_SPLIT_LIST,
    /* Objects one after the other with white space between them. */
    WEFT_JSON_SPLIT_LINES,
    WEFT_JSON_SPLIT_MODE_COUNT
};

enum { WEFT_JSON_SPLIT_DEPTH_MAX = 64, WEFT_JSON_SPLIT_KEY_MAX = 256 };

/* Each gets one complete object, borrowed during the call, not NUL-terminated. A negative return
 * ends the stream: feed returns it. on_metadata may be NULL; it is called at most once. */
struct weft_json_split_sink {
    int (*on_item)(void *data, const char *text, size_t len, struct weft_error *err);
    int (*on_metadata)(void *data, const char *text, size_t len, struct weft_error *err);
    void *data;
};

/* item_max: the largest piece in bytes (also of metadata). NULL without memory. */
struct weft_json_split *weft_json_split_new(enum weft_json_split_mode mode, size_t item_max,
                                            const struct weft_json_split_sink *sink)
    __attribute__((warn_unused_result));
/* How many bytes of the stream were understood: after a failure, where it is. */
uint64_t weft_json_split_offset(const struct weft_json_split *split);
void weft_json_split_free(struct weft_json_split *split);
WEFT_DEFINE_AUTO(struct weft_json_split, weft_json_split_free)

/* Takes the next bytes, in any pieces. Errors, all final (the same code comes back from then on):
 * -EBADMSG for what is not such a stream (message with the byte's offset), -EFBIG for a piece over
 * item_max, -E2BIG for nesting over WEFT_JSON_SPLIT_DEPTH_MAX within a piece, -ENOMEM, the sink's.
 */
int weft_json_split_feed(struct weft_json_split *split, const char *bytes, size_t len,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* The stream is over: 0 if it is complete, else -EBADMSG (cut short), or the earlier error. */
int weft_json_split_end(struct weft_json_split *split, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
