/* SPDX-License-Identifier: Apache-2.0 */
/* The file from which Node Feature Discovery takes a node's GPU labels (features.h): written when
 * what it says changes, replaced as a whole, and left in place when the plugin ends, so that an
 * upgrade takes no label away. Loop thread; small local files, not synced: what a crash of the host
 * loses is written at the next start. */
#ifndef WEFT_DEVICEPLUGIN_FEATURE_FILE_H
#define WEFT_DEVICEPLUGIN_FEATURE_FILE_H

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_clock;
struct weft_feature_file;
struct weft_loop;
struct weft_machine;
struct weft_options;

struct weft_feature_file_options {
    struct weft_loop *loop;
    const struct weft_options *options; /* labels, pools, host_root, as they are at each update */
    const struct weft_clock *clock;
    int64_t again_ns; /* how often to look at the file; 0: 30 s */
};

int weft_feature_file_new(const struct weft_feature_file_options *options,
                          struct weft_feature_file **ret_file, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_feature_file_free(struct weft_feature_file *file);
WEFT_DEFINE_AUTO(struct weft_feature_file, weft_feature_file_free)

/* Makes the file say what the machine (read during the call) and the options come to. What cannot
 * be written is named in the log; every half minute the file is looked at, and written again where
 * it is not as it should be. Does nothing where no file is asked for, nor for a machine without
 * GPUs that says why none may be seen: labels that are there stay. */
void weft_feature_file_update(struct weft_feature_file *file, const struct weft_machine *machine);

/* Removes such a file, if it is there. -EINVAL for what is no regular file, -errno. */
int weft_feature_file_remove(const char *path, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
