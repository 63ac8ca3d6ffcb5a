/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a fabric file and as a GUID map. Groups make a lawful tree; GUIDs are in order. */
#include <stdlib.h>

#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/labels.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct weft_fabric_file *file)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    for (size_t i = 1; i < file->guid_count; i++) {
        if (file->guids[i - 1].guid >= file->guids[i].guid) {
            abort();
        }
    }
    if (file->groups != NULL && weft_tree_from_declared(file->groups, &tree, NULL) == 0 &&
        weft_tree_check(tree, NULL) < 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, const char *, struct weft_fabric_file **,
                                  struct weft_error *) = {weft_parse_fabric_file,
                                                          weft_parse_guid_map};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(readers); i++) {
        weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
        struct weft_error err = {0};
        if (readers[i]((const char *)data, size, "file", &file, &err) == 0) {
            check(file);
        } else if (err.message[0] == '\0') {
            abort();
        }
    }
    return 0;
}
