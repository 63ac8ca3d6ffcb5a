/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the configuration's reader. Private to pkg/source. */
#ifndef WEFT_SOURCE_CONFIG_INTERNAL_H
#define WEFT_SOURCE_CONFIG_INTERNAL_H

#include "pkg/source/config.h"

struct weft_json;

void weft_names_done(struct weft_names *names);
int weft_names_add(struct weft_names *names, const char *text, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_config_source_done(struct weft_config_source *source);

/* A list of 1 to max strings: 1 if it is there, 0 if not, or -errno. */
int weft_config_names(const struct weft_json *object, const char *key, size_t max,
                      struct weft_names *names, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Are these distinct tier names? list is where they were read, for the error's line. */
int weft_config_check_tiers(const struct weft_json *list, const struct weft_names *tiers,
                            struct weft_error *err) __attribute__((warn_unused_result));
/* Reads "sources" (default: labels, preset aws); fills in the tier plan if the file has none, and
 * checks each source's tiers against it. */
int weft_config_read_sources(const struct weft_json *root, struct weft_config *config,
                             struct weft_error *err) __attribute__((warn_unused_result));

#endif
