/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNodes as YAML text, in and out. Pure. */
#ifndef WEFT_HYPERNODE_MANIFEST_H
#define WEFT_HYPERNODE_MANIFEST_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/hypernode/hypernode.h"

struct weft_buf;

/* Appends one manifest (no "---", no resourceVersion). prefix is the label/annotation prefix
 * ("weft.dev/"). 0, -ENOMEM, -EFBIG. */
int weft_hypernode_write_yaml(const struct weft_hypernode *hn, const char *prefix,
                              struct weft_buf *buf) __attribute__((warn_unused_result));
/* Appends all, each behind its own "---", tiers ascending, then by name: the order in which a plain
 * `kubectl apply -f` may create them. */
int weft_hypernodes_write_yaml(const struct weft_hypernode_set *set, const char *prefix,
                               struct weft_buf *buf) __attribute__((warn_unused_result));
/* A text of manifests: borrowed. */
struct weft_manifest_text {
    const char *text;
    size_t len;
    const char *name;   /* the file's, for errors */
    const char *prefix; /* label/annotation prefix */
};

/* What a text held besides HyperNodes. */
struct weft_manifest_counts {
    size_t skipped;     /* objects of other kinds */
    size_t empty_lists; /* Lists and HyperNodeLists of no item: an API server's "there is none" */
};

/* Reads a stream of YAML or JSON documents: HyperNodes, HyperNodeLists or Lists of them; other
 * kinds are skipped, empty documents too. Adds to *set; a name that is there already is -EEXIST.
 * After a failure *set holds what came before it. ret_counts may be NULL. Errors: -EINVAL with
 * file, line and field, -EEXIST, -EFBIG, -ENOMEM. */
int weft_hypernodes_read(const struct weft_manifest_text *source, struct weft_hypernode_set *set,
                         struct weft_manifest_counts *ret_counts, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
