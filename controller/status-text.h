/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the controller as a document: what the ConfigMap weft-status holds and what
 * /debug/tree begins with. It says nothing that changes by itself (no times, no counters), so that
 * an unchanged world is the same text, whichever process wrote it. Pure. */
#ifndef WEFT_CONTROLLER_STATUS_TEXT_H
#define WEFT_CONTROLLER_STATUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/hypernode/layout.h"
#include "pkg/source/config.h"

struct weft_buf;
struct weft_finding;
struct weft_json_writer;
struct weft_refusals;

enum {
    /* A ConfigMap holds 1 MiB in all; escaping in the request's JSON comes on top. */
    WEFT_STATUS_TEXT_MAX = 640 << 10,
    /* of it, findings: past this many bytes or entries the list is cut, the counts are not */
    WEFT_STATUS_FINDINGS_BYTES = 512 << 10,
    WEFT_STATUS_FINDINGS_MAX = 2000,
    WEFT_STATUS_LISTS = 5
};

/* Borrowed. */
struct weft_finding_list {
    const struct weft_finding *items; /* sorted by kind */
    size_t count;
};

/* All that is odd now; one that is over is passed by. */
struct weft_finding_lists {
    struct weft_finding_list lists[WEFT_STATUS_LISTS];
    bool (*is_over)(const void *data, const struct weft_finding *finding); /* NULL: none is */
    const void *data;
};
bool weft_finding_is_over(const struct weft_finding_lists *lists,
                          const struct weft_finding *finding);
size_t weft_finding_count(const struct weft_finding_lists *lists);

struct weft_status_facts {
    const char *instance;
    bool paused;
    bool served;              /* the server has HyperNodes in our version */
    const char *config_error; /* why the configuration file is not in use; "": it is */
    const char *pass_error;   /* why the last pass came to nothing; "": it did not */
    bool decided;             /* there was a good pass: what follows is of it */
    struct {
        size_t selected, placed, unplaced, excluded, kept;
    } nodes;
    const struct weft_names *tiers;           /* the plan's names */
    size_t hypernodes[WEFT_LAYOUT_TIERS_MAX]; /* wanted, by tier index */
    size_t foreign;                           /* HyperNodes of others that exist */
    size_t source_count;
    struct {
        const char *name, *state, *error; /* error "": none */
        size_t placed;                    /* Nodes that it decides */
    } sources[WEFT_CONFIG_SOURCES_MAX];
    const struct weft_refusals *refusals; /* NULL: none */
    struct weft_finding_lists findings;
};

/* The members of the document's object but for the findings. */
void weft_status_put(const struct weft_status_facts *facts, struct weft_json_writer *w);
/* One finding as an object. */
void weft_status_put_finding(const struct weft_finding *finding, struct weft_json_writer *w);
/* The whole document, indented, with findings up to the limits above. Check buf->status. */
void weft_status_text(const struct weft_status_facts *facts, struct weft_buf *buf);

#endif
