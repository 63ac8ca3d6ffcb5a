/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's sources at work: each is looked at when its files change or its interval is
 * over, keeps its last good result while newer looks fail or are only a part, and tells its health.
 * One way for the controller and the command line.
 *
 * Loop thread only. Files are read on it, blocking; commands and servers are not waited for. */
#ifndef WEFT_SOURCE_SOURCE_H
#define WEFT_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/source/config.h"

struct weft_cabling;
struct weft_clock;
struct weft_declared;
struct weft_fabric;
struct weft_loop;
struct weft_nic_inventory;
struct weft_sources;

/* What a look gave. A labels source has none: the caller has the Nodes. */
struct weft_source_result {
    struct weft_fabric *fabric;     /* a switch graph; or */
    struct weft_declared *declared; /* groups */
    struct weft_cabling *expected;  /* ptm: the cables that should be, from which fabric was made */
    struct weft_nic_inventory *inventory; /* of inventory and nodeMap; NULL: not given */
    char *epoch;                          /* of weft's own file; NULL: none */
    bool partial;
};

enum weft_source_state {
    WEFT_SOURCE_WAITING, /* not looked at yet */
    WEFT_SOURCE_OK,      /* the newest look is in use */
    WEFT_SOURCE_PARTIAL, /* it is in use, but is only a part */
    WEFT_SOURCE_STALE,   /* the newest look is of no use, an older one stays */
    WEFT_SOURCE_FAILED,  /* and there is no older one */
    WEFT_SOURCE_STATE_COUNT
};

struct weft_source_health {
    enum weft_source_state state;
    int64_t since;           /* monotonic: when the state became this one */
    uint64_t looks;          /* so far that read something */
    uint64_t complete;       /* looks so far that saw all, whether it had changed or not */
    unsigned failures;       /* in a row */
    struct weft_error error; /* why it is not OK, with the source's name; code 0: it is */
};

struct weft_sources_options {
    struct weft_loop *loop;
    const struct weft_clock *clock; /* NULL: the system's */
    uint64_t seed;                  /* of jitter; 0: from clock and process */
    size_t output_max;              /* of a command or an answer; 0: WEFT_FABRIC_TEXT_MAX */
    bool once;                      /* each is looked at once; nothing is watched */
    /* Something is new: a result or a source's health. From the loop, never from inside a function
     * of this header. May be NULL. */
    void (*changed)(void *data);
    void *data;
};

/* Errors: -ENOMEM. */
int weft_sources_new(const struct weft_sources_options *options, struct weft_sources **ret_sources,
                     struct weft_error *err) __attribute__((warn_unused_result));
void weft_sources_free(struct weft_sources *sources);
WEFT_DEFINE_AUTO(struct weft_sources, weft_sources_free)

/* Looks once at each of them, waiting for it: for programs without a loop. The settings are
 * borrowed until the end. What a source gave, or that it failed, is asked for as below. Errors: of
 * the loop, -ENOMEM. */
int weft_sources_read(const struct weft_config_source *list, size_t count,
                      struct weft_sources **ret_sources, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Takes these settings, best first; they are borrowed until the next call or the end. Sources whose
 * settings stay (by their text) keep their result, their health and a look under way. Errors:
 * -ENOMEM; then all is as it was. */
int weft_sources_configure(struct weft_sources *sources, const struct weft_config_source *list,
                           size_t count, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Reads files that have changed, now. true if something is new. The intervals go on as they were.
 */
bool weft_sources_refresh(struct weft_sources *sources);
/* Starts the looks that are due, as its timer does. */
void weft_sources_tick(struct weft_sources *sources);
/* Has every source given a result or failed? */
bool weft_sources_ready(const struct weft_sources *sources);
/* 0, or -ENODATA with a reason if a source has no result at all: then nothing may be decided. */
int weft_sources_check(const struct weft_sources *sources, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Of the index-th source; borrowed until the loop runs on. NULL: none yet, or labels. */
const struct weft_source_result *weft_sources_result(const struct weft_sources *sources,
                                                     size_t index);
const struct weft_source_health *weft_sources_health(const struct weft_sources *sources,
                                                     size_t index);
const char *weft_source_state_name(enum weft_source_state state);

/* Settings for one file of a kind ("a,b" for several, where a kind takes several): like those of
 * settings (NULL: all defaults) but for where it reads. The caller owns *ret's content
 * (weft_config_source_done). Errors: -ENOMEM. */
int weft_source_for_file(enum weft_source_kind kind, const char *path,
                         const struct weft_config_source *settings, struct weft_config_source *ret,
                         struct weft_error *err) __attribute__((warn_unused_result));
void weft_config_source_done(struct weft_config_source *source);

#endif
