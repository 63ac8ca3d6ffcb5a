/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the configuration's reader. Private to pkg/source. */
#ifndef WEFT_SOURCE_CONFIG_INTERNAL_H
#define WEFT_SOURCE_CONFIG_INTERNAL_H

#include "pkg/source/config.h"

struct weft_json;

void weft_names_done(struct weft_names *names);
WEFT_DEFINE_AUTO_VALUE(struct weft_names, weft_names_done)
int weft_names_add(struct weft_names *names, const char *text, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Each returns 1 if the field is there, 0 if not, or -errno with the field's place. */

/* A list of 1 to max strings. */
int weft_config_names(const struct weft_json *object, const char *key, size_t max,
                      struct weft_names *names, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same of a list that is at hand. */
int weft_config_words(const struct weft_json *list, size_t max, struct weft_names *names,
                      struct weft_error *err) __attribute__((warn_unused_result));
/* A text that is not empty, owned by the caller. */
int weft_config_text(const struct weft_json *object, const char *key, char **ret_text,
                     struct weft_error *err) __attribute__((warn_unused_result));
/* One of count words, as its index. */
int weft_config_word(const struct weft_json *object, const char *key, const char *const *words,
                     size_t count, int *ret_index, struct weft_error *err)
    __attribute__((warn_unused_result));
/* "10s". */
int weft_config_duration(const struct weft_json *object, const char *key, int64_t *ret_ns,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* "20%". */
int weft_config_percent(const struct weft_json *object, const char *key, unsigned *ret_percent,
                        struct weft_error *err) __attribute__((warn_unused_result));
int weft_config_unsigned(const struct weft_json *object, const char *key, int64_t min, int64_t max,
                         unsigned *ret_value, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Are these distinct tier names? list is where they were read, for the error's line. */
int weft_config_check_tiers(const struct weft_json *list, const struct weft_names *tiers,
                            struct weft_error *err) __attribute__((warn_unused_result));
/* An error of a part that knows no file: put where the configuration says it. */
int weft_config_at(const struct weft_json *node, const struct weft_error *why,
                   struct weft_error *err);

/* Reads one member of "sources", {kind: {…}}. */
int weft_config_read_source(const struct weft_json *item, const struct weft_config *config,
                            struct weft_config_source *source, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_config_read_labels(const struct weft_json *object, const struct weft_config *config,
                            struct weft_config_source *source, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The names of the tiers that a source of this kind has if neither it nor the file says any; NULL
 * at the end. */
const char *const *weft_source_default_tiers(enum weft_source_kind kind);
/* Reads "sources" (default: labels, preset aws); fills in the tier plan if the file has none, and
 * checks each source's tiers against it. */
int weft_config_read_sources(const struct weft_json *root, struct weft_config *config,
                             struct weft_error *err) __attribute__((warn_unused_result));

#endif
