/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the clouds' answers. What is read makes a lawful tree, and joined with itself it is
 * the same. */
#include <stdlib.h>

#include "pkg/fabric/cloud.h"
#include "pkg/fabric/labels.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct weft_declared *declared)
{
    const struct weft_declared *const parts[] = {declared, declared};
    weft_auto(weft_declared_free) struct weft_declared *joined = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if (weft_tree_from_declared(declared, &tree, NULL) == 0 && weft_tree_check(tree, NULL) < 0) {
        abort();
    }
    if (weft_declared_join(parts, 2, "both", &joined, NULL) < 0 ||
        joined->node_count != declared->node_count) {
        abort();
    }
}

static void must_explain(int rc, const struct weft_error *err)
{
    if (rc < 0 && err->message[0] == '\0') {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weft_cloud_options own = {.host = "n1"};
    struct weft_declared *found[3] = {NULL};
    const char *text = (const char *)data;
    struct weft_error err = {0};
    must_explain(weft_parse_aws_topology(text, size, "f", NULL, &found[0], &err), &err);
    err = (struct weft_error){0};
    must_explain(weft_parse_oci(text, size, "f", NULL, &found[1], &err), &err);
    err = (struct weft_error){0};
    must_explain(weft_parse_oci(text, size, "f", &own, &found[2], &err), &err);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(found); i++) {
        if (found[i] != NULL) {
            check(found[i]);
        }
    }
    weft_declared_free(found[0]);
    weft_declared_free(found[1]);
    weft_declared_free(found[2]);
    return 0;
}
