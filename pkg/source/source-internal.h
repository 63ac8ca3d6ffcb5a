/* SPDX-License-Identifier: Apache-2.0 */
/* Between the sources' common part (sources.c) and the ways to read them (source-*.c). Private to
 * pkg/source. */
#ifndef WEFT_SOURCE_SOURCE_INTERNAL_H
#define WEFT_SOURCE_SOURCE_INTERNAL_H

#include "pkg/kube/backoff.h"
#include "pkg/loop/loop.h"
#include "pkg/source/source.h"

struct weft_source;

/* A way to read. look begins one look, which ends with weft_source_finish or weft_source_unchanged,
 * at once or later; stop ends it without, and frees the state. start may make the state. */
struct weft_source_ops {
    int (*start)(struct weft_source *source, struct weft_error *err);
    void (*look)(struct weft_source *source);
    void (*stop)(struct weft_source *source);
    bool cheap; /* a look costs next to nothing while nothing has changed */
};

struct weft_source {
    struct weft_sources *owner;
    const struct weft_config_source *settings; /* of the newest configuration */
    char *text;                                /* of the settings: what makes it the same source */
    const struct weft_source_ops *ops;         /* NULL: the Nodes themselves (labels) */
    void *state;                               /* the ops' own */
    struct weft_source_result result;          /* the last good one */
    bool has_result;
    bool looking;
    bool on_demand; /* …because somebody asked, not because it is due */
    int64_t due;    /* monotonic: of the next look */
    struct weft_source_health health;
    struct weft_kube_backoff backoff;
};

struct weft_sources {
    struct weft_loop *loop;
    struct weft_loop *own_loop; /* the same, of weft_sources_read */
    const struct weft_clock *clock;
    uint64_t seed;
    size_t output_max;
    bool once;
    void (*changed)(void *data);
    void *data;
    struct weft_timer *timer; /* of the source that is due next */
    struct weft_post post;    /* tells of what is new */
    bool news;
    struct weft_source **items;
    size_t count;
};

void weft_source_result_done(struct weft_source_result *result);
WEFT_DEFINE_AUTO_VALUE(struct weft_source_result, weft_source_result_done)

/* Ends a look. With code 0 in why the result is whole and good, or a part as it says; with a code
 * and a result it is a part, why tells; without a result the look failed. Takes the result's
 * content over. retry_after_ns: not before (what a server asked for); 0: as configured. */
void weft_source_finish(struct weft_source *source, struct weft_source_result *result,
                        const struct weft_error *why, int64_t retry_after_ns);
/* Ends a look that found all as it was. */
void weft_source_unchanged(struct weft_source *source);
int64_t weft_source_now(const struct weft_source *source);

/* A text that was read, and where. */
struct weft_source_text {
    char *path;
    char *text;
    size_t len;
};

struct weft_source_texts {
    struct weft_source_text *items;
    size_t count;
    size_t cap;
};

void weft_source_texts_done(struct weft_source_texts *texts);
WEFT_DEFINE_AUTO_VALUE(struct weft_source_texts, weft_source_texts_done)
/* Takes text over, also on failure; path is copied. -ENOMEM, -EFBIG. */
int weft_source_texts_add(struct weft_source_texts *texts, const char *path, char *text, size_t len)
    __attribute__((warn_unused_result));

/* Pure: the texts of a source of the settings' kind to a result (without names). Errors: those of
 * the kind's parser. */
int weft_source_parse(const struct weft_config_source *settings,
                      const struct weft_source_texts *texts, struct weft_source_result *ret_result,
                      struct weft_error *err) __attribute__((warn_unused_result));
/* Most bytes of one file of that kind. */
size_t weft_source_text_max(enum weft_source_kind kind);
/* Adds what the settings' nodeMap and inventory say. Reads files. */
int weft_source_read_names(const struct weft_config_source *settings,
                           struct weft_source_result *result, struct weft_error *err)
    __attribute__((warn_unused_result));
/* What tells whether a file has changed, chained with seed; renames and writes both change it. */
uint64_t weft_source_stamp(uint64_t seed, const char *path);

extern const struct weft_source_ops weft_source_files_ops;
extern const struct weft_source_ops weft_source_command_ops;
extern const struct weft_source_ops weft_source_ufm_ops;

#endif
