/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a reflector: reflector.c decides what is asked when, reflector-decode.c turns
 * an answer's bytes into objects. */
#ifndef WEFT_KUBE_REFLECTOR_INTERNAL_H
#define WEFT_KUBE_REFLECTOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/json/split.h"
#include "pkg/kube/backoff.h"
#include "pkg/kube/client.h"
#include "pkg/kube/codec.h"
#include "pkg/kube/reflector.h"
#include "pkg/pb/arena.h"
#include "pkg/pb/kube-split.h"

enum { WEFT_KUBE_REFLECTOR_MAGIC = 0x4b755265 /* "KuRe" */ };

/* Streaming is a watch that begins with what there is and says where that ends: then it has become
 * the watch (Kubernetes' KEP-3157). */
enum weft_kube_phase { WEFT_KUBE_LISTING, WEFT_KUBE_STREAMING, WEFT_KUBE_WATCHING };

struct weft_kube_reflector {
    uint32_t magic;
    struct weft_kube_client *client;
    struct weft_kube_reflector_options options; /* texts: path is ours, selectors are NULL */
    char *path;
    char *selectors;          /* query text, "" or "labelSelector=…" */
    struct weft_timer *timer; /* starts the next request */
    struct weft_kube_backoff backoff;

    enum weft_kube_phase phase; /* of the request under way, or the next one */
    struct weft_kube_call *call;
    bool synced;
    bool first_page;
    bool began;              /* the answer: a 2xx */
    bool pages;              /* the server does not stream lists, or we were not to ask */
    unsigned streams_failed; /* in a row */
    char *resource_version;  /* to watch from; NULL: a list is needed */
    char *continue_token;    /* of the next page; NULL: the first */
    int64_t started_at;      /* of a watch */
    uint64_t events;         /* of this watch, bookmarks too */

    /* the answer under way */
    struct weft_json_split *json;
    struct weft_pb_split *pb;
    struct weft_pb_arena arena;
    struct weft_error event_error; /* of an ERROR event; code 0 = none */
    char *page_version;            /* metadata of the page */
    char *page_continue;

    /* Callbacks on the stack: memory is freed and requests are begun at depth 0 only. */
    unsigned depth;
    bool abandoned; /* the bytes still arriving belong to a call that was cancelled */
    bool freed;
};

/* Prepares for an answer of this type; -EPROTO for one that is no list or watch. */
int weft_kube_reflector_begin_answer(struct weft_kube_reflector *r, const char *content_type,
                                     struct weft_error *err) __attribute__((warn_unused_result));
int weft_kube_reflector_feed(struct weft_kube_reflector *r, const char *bytes, size_t len,
                             struct weft_error *err) __attribute__((warn_unused_result));
/* 0 if the answer ended where one may end. */
int weft_kube_reflector_end_answer(struct weft_kube_reflector *r, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The streamed list is complete as of version. -ENOMEM. */
int weft_kube_reflector_streamed(struct weft_kube_reflector *r, const char *version,
                                 struct weft_error *err) __attribute__((warn_unused_result));
/* Forgets the answer's decoders. */
void weft_kube_reflector_drop_answer(struct weft_kube_reflector *r);

#endif
