/* SPDX-License-Identifier: Apache-2.0 */
/* A reflector against a script of answers: what was asked and what came out, a line a callback. */
#ifndef WEFT_TESTS_UNIT_KUBE_RECORDER_H
#define WEFT_TESTS_UNIT_KUBE_RECORDER_H

#include "pkg/base/clock.h"
#include "pkg/kube/reflector.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)
#define WATCH "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion="

/* What to do when the log has grown to at_line lines. */
enum action { NOTHING, FREE_IT, RELIST };

struct recorder {
    struct fake_script script;
    struct fake_rig rig;
    struct weft_kube_reflector *reflector;
    struct weft_buf log; /* a line a callback */
    size_t lines, want;
    bool done; /* lines >= want */
    size_t at_line;
    enum action action;
    int64_t last_retry_ns;
    bool with_docs;
};

/* A page of two, and waits of milliseconds. */
struct weft_kube_reflector_options recorder_options(struct recorder *rec);
void recorder_begin(struct recorder *rec, const struct fake_step *steps, size_t count);
/* Runs until want lines are in the log (0: until the script is used up). */
void recorder_follow(struct recorder *rec, const struct weft_kube_reflector_options *options,
                     size_t want);
void recorder_end(struct recorder *rec, const char *expected);

#define RUN(steps, want, expected)                                                                 \
    do {                                                                                           \
        struct recorder rec_;                                                                      \
        recorder_begin(&rec_, (steps), WEFT_ARRAY_LEN(steps));                                     \
        const struct weft_kube_reflector_options options_ = recorder_options(&rec_);               \
        recorder_follow(&rec_, &options_, (want));                                                 \
        recorder_end(&rec_, (expected));                                                           \
    } while (0)

/* JSON answers; the codec is chosen by the answer's type. */
#define ITEM(name, version, label)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u\",\"resourceVersion\":\"" version            \
    "\",\"labels\":{\"l\":\"" label "\"},\"annotations\":{\"a\":\"b\"}}}"
#define LIST(version, next, items)                                                                 \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next                      \
    "\"},\"items\":[" items "]}"
#define EVENT(type, item) "{\"type\":\"" type "\",\"object\":" item "}\n"
#define BOOKMARK(version) EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define FAILURE(code, reason)                                                                      \
    "{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"m\"}"
#define OK .status = 200
#define HELD .status = 200, .stream = true, .end = FAKE_HOLD

#endif
