/* SPDX-License-Identifier: Apache-2.0 */
/* What the folder's parts share: folder.c (state, reading), folder-steps.c (steps). */
#ifndef WEFT_APPLY_FOLDER_INTERNAL_H
#define WEFT_APPLY_FOLDER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/apply/folder.h"
#include "pkg/base/buf.h"

/* How files of ours begin; a file without is somebody else's. */
#define WEFT_FOLDER_MANIFEST_MARK "# weft manifest"
#define WEFT_FOLDER_STEP_MARK "# weft step"
#define WEFT_FOLDER_SCRIPT_MARK "#!/bin/sh\n# weft step"
#define WEFT_FOLDER_STATE_FILE "apply.yaml"
#define WEFT_FOLDER_SCRIPT_FILE "run.sh"
#define WEFT_FOLDER_STEPS_FILE "steps.txt"

struct weft_folder_name {
    char *text;
};

/* The regular files of a folder, sorted by name. */
struct weft_folder_list {
    struct weft_folder_name *names;
    size_t count;
    size_t cap;
};

int weft_folder_list(const char *dir, struct weft_folder_list *ret_list, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_folder_list_done(struct weft_folder_list *list);
WEFT_DEFINE_AUTO_VALUE(struct weft_folder_list, weft_folder_list_done)

/* Does DIR/name begin with the mark? 1, 0 (also if it is not there), or a negative errno. */
int weft_folder_has_mark(const char *dir, const char *name, const char *mark,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Makes DIR if it is missing. */
int weft_folder_make(const char *dir, struct weft_error *err) __attribute__((warn_unused_result));
/* -EEXIST if a file of that name is there that does not begin with the mark. */
int weft_folder_check_free(const char *dir, const char *name, const char *mark,
                           struct weft_error *err) __attribute__((warn_unused_result));

/* Where files go, and what was done. */
struct weft_folder_out {
    const char *dir;
    struct weft_folder_counts counts;
};

/* Replaces DIR/name unless it has just that content. */
int weft_folder_put(struct weft_folder_out *out, const char *name, const struct weft_buf *content,
                    unsigned mode, struct weft_error *err) __attribute__((warn_unused_result));
/* Removes the files that begin with the mark and that keep (may be NULL) does not ask to keep. */
int weft_folder_sweep(struct weft_folder_out *out, const char *mark,
                      bool (*keep)(const char *name, const void *data), const void *data,
                      struct weft_error *err) __attribute__((warn_unused_result));

#endif
