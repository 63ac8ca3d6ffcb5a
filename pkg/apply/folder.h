/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNodes as a folder of manifests, for people who apply by hand or by GitOps: the whole state
 * for a first install, or numbered steps from one folder's state to the next. Files are replaced
 * atomically; files that weft did not write are never touched (docs/folder.md). Blocking I/O. */
#ifndef WEFT_APPLY_FOLDER_H
#define WEFT_APPLY_FOLDER_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/hypernode/hypernode.h"

struct weft_plan;

enum { WEFT_FOLDER_FILE_MAX = 64 << 20, WEFT_FOLDER_FILES_MAX = 200000 };

struct weft_folder_counts {
    size_t written;   /* files created or changed */
    size_t unchanged; /* files that already were as wanted */
    size_t removed;   /* stale files of ours */
};

/* The state: DIR/<name>.yaml for each object and DIR/apply.yaml with all of them, bottom-up, for
 * plain `kubectl apply -f` as a first install. DIR is made if missing (its parent is not).
 * Manifests of ours for names no longer in set are removed; a file of another that is in the way is
 * -EEXIST before anything is written. *ret_counts may be NULL. */
int weft_folder_write(const char *dir, const struct weft_hypernode_set *set, const char *prefix,
                      struct weft_folder_counts *ret_counts, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Reads DIR's manifests back: every *.yaml, *.yml and *.json in it, no sub-folders, apply.yaml and
 * step files left out. Documents of other kinds are skipped. A missing DIR is -ENOENT. */
int weft_folder_read(const char *dir, const char *prefix, struct weft_hypernode_set *ret_set,
                     struct weft_error *err) __attribute__((warn_unused_result));
/* The steps of plan as DIR/NNN-<kind>-<name>.yaml, in order, with DIR/steps.txt that says how to
 * run them and DIR/run.sh that does. Older step files of ours are removed first, so that DIR never
 * holds steps of two plans. */
int weft_folder_write_steps(const char *dir, const struct weft_plan *plan, const char *prefix,
                            struct weft_folder_counts *ret_counts, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
