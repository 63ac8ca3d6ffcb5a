/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a hostlist, as Slurm's topology and as topograph's model. What is read makes a lawful
 * tree; a hostlist in short form stands for the same names. */
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/slurm.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tree(const struct weft_declared *declared)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if (declared != NULL && weft_tree_from_declared(declared, &tree, NULL) == 0 &&
        (weft_tree_check(tree, NULL) < 0 || tree->node_count != declared->node_count)) {
        abort();
    }
}

static void must_explain(int rc, const struct weft_error *err)
{
    if (rc < 0 && err->message[0] == '\0') {
        abort();
    }
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names to the short form and back: the same set. */
static void check_hostlist(const char *data, size_t size)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    weft_auto(weft_hostlist_done) struct weft_hostlist again = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 22);
    if (weft_hostlist_add(&list, (struct weft_str){data, size}, NULL) < 0 || list.count > 2000 ||
        weft_hostlist_format((const char *const *)list.names, list.count, ",", SIZE_MAX, &buf) <
            0) {
        return;
    }
    if (weft_hostlist_add(&again, weft_str(weft_buf_text(&buf)), NULL) < 0 ||
        again.count != list.count) {
        abort();
    }
    if (list.count > 0) {
        qsort(list.names, list.count, sizeof(char *), compare_text);
        qsort(again.names, again.count, sizeof(char *), compare_text);
    }
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(list.names[i], again.names[i]) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_declared_free) struct weft_declared *topology = NULL;
    weft_auto(weft_declared_free) struct weft_declared *model = NULL;
    struct weft_error err = {0};
    const char *text = (const char *)data;
    if (memchr(text != NULL ? text : "", '\0', size) == NULL) {
        check_hostlist(text, size);
    }
    must_explain(weft_parse_slurm(text, size, "file", NULL, &topology, &err), &err);
    check_tree(topology);
    err = (struct weft_error){0};
    must_explain(weft_parse_topograph_model(text, size, "file", NULL, &model, &err), &err);
    check_tree(model);
    return 0;
}
