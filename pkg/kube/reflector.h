/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a collection: a list, then a watch from its resourceVersion with bookmarks, resumed where
 * it ended, listed again when the server has forgotten that version (410). It hands objects on and
 * keeps none; the cache is the caller's. Errors never end it: it reports each, waits (capped,
 * jittered exponential back-off, at least what the server asked for) and goes on until it is freed.
 *
 * The list is streamed as the beginning of the watch (sendInitialEvents) where the server can; one
 * that refuses that (400, 422) is asked for pages from then on, as is one that fails at it twice in
 * a row. Either way it is a quorum read (no resourceVersion is sent). Loop thread only. */
#ifndef WEFT_KUBE_REFLECTOR_H
#define WEFT_KUBE_REFLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/kube/meta.h"

struct weft_json;
struct weft_kube_client;
struct weft_kube_reflector;

enum weft_kube_codec {
    WEFT_KUBE_METADATA, /* PartialObjectMetadata as protobuf: names, labels, annotations */
    WEFT_KUBE_JSON,     /* whole objects as JSON (custom resources have no protobuf) */
    WEFT_KUBE_CODEC_COUNT
};

enum weft_kube_change {
    WEFT_KUBE_ADDED, /* also each object of a list: add or replace */
    WEFT_KUBE_MODIFIED,
    WEFT_KUBE_DELETED,
    WEFT_KUBE_CHANGE_COUNT
};

struct weft_kube_object {
    struct weft_kube_meta meta;
    const struct weft_json *doc; /* WEFT_KUBE_JSON only; borrowed during the callback */
};

/* Any of them may free the reflector or ask for a relist. on_object and on_synced are required. */
struct weft_kube_watcher {
    /* A list starts: objects not seen between this and on_synced are gone. Comes again, without
     * on_synced, if the list had to start over. */
    void (*on_list)(void *data);
    void (*on_object)(void *data, enum weft_kube_change change,
                      const struct weft_kube_object *object);
    /* The list is complete; from here on the watch keeps the cache up to date. */
    void (*on_synced)(void *data);
    /* Something failed; the next try is in retry_ns. domain HTTP, domain_code 404 = the server does
     * not know this resource (a missing CRD). A cut watch that resumes at once is no error. */
    void (*on_error)(void *data, const struct weft_error *error, int64_t retry_ns);
    void *data;
};

struct weft_kube_reflector_options {
    const char *path;           /* of the collection (weft_kube_path). Copied. */
    const char *label_selector; /* plain text, NULL = all. Copied. */
    const char *field_selector;
    enum weft_kube_codec codec;
    bool annotations; /* fill meta.annotations */
    bool pages;       /* never ask for a streamed list */
    /* 0 = the default in brackets */
    unsigned page_size;     /* objects a page [500] */
    unsigned watch_seconds; /* the server ends a watch after this, up to twice it by jitter [300] */
    size_t item_max;        /* bytes of one object [4 MiB] */
    int64_t idle_ns;        /* silence after which a watch counts as dead [90 s] */
    int64_t page_timeout_ns;  /* one page of a list; ten times that a streamed list [60 s] */
    int64_t backoff_min_ns;   /* first wait after a failure [500 ms] */
    int64_t backoff_max_ns;   /* longest wait [30 s] */
    int64_t missing_retry_ns; /* wait after a 404 [60 s] */
    uint64_t seed;            /* of the jitter; 0 = from the clock and the process id */
    struct weft_kube_watcher watcher;
};

/* Starts at once (the first callback comes from the loop). client is borrowed and must outlive it.
 * Errors: -ENOMEM, -EINVAL. */
int weft_kube_reflector_new(struct weft_kube_client *client,
                            const struct weft_kube_reflector_options *options,
                            struct weft_kube_reflector **ret_reflector, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Stops without a further callback; also from its own callbacks. NULL is fine. */
void weft_kube_reflector_free(struct weft_kube_reflector *reflector);
WEFT_DEFINE_AUTO(struct weft_kube_reflector, weft_kube_reflector_free)

/* Was a list completed, and no relist asked for or under way? */
bool weft_kube_reflector_synced(const struct weft_kube_reflector *reflector);
/* Lists again from scratch, now: a new leader does this before its first write. on_list follows. */
void weft_kube_reflector_relist(struct weft_kube_reflector *reflector);

#endif
