/* SPDX-License-Identifier: Apache-2.0 */
/* GUIDs as they are read, before they are sorted. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_FABRIC_FILE_INTERNAL_H
#define WEFT_FABRIC_FABRIC_FILE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/str.h"
#include "pkg/fabric/fabric-file.h"

struct weft_guid_line {
    struct weft_guid_name name;
    unsigned line;
};

struct weft_guid_list {
    const char *source;
    struct weft_guid_line *items;
    size_t count;
    size_t cap;
};

void weft_guid_list_done(struct weft_guid_list *list);
WEFT_DEFINE_AUTO_VALUE(struct weft_guid_list, weft_guid_list_done)

/* err set: -EFBIG, -ENOMEM. */
int weft_guid_list_add(struct weft_guid_list *list, uint64_t guid, struct weft_str node,
                       unsigned line, struct weft_error *err) __attribute__((warn_unused_result));
/* Sorts the GUIDs into the file, with the epoch. -EINVAL for a GUID of two nodes. */
int weft_fabric_file_fill(struct weft_fabric_file *file, struct weft_guid_list *list,
                          struct weft_str epoch, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_fabric_file_sort_hosts(struct weft_fabric_file *file);

#endif
