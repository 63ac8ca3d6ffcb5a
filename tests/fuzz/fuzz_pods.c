/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a list of pods. What is read has a node and a gang in a namespace each, and a second
 * reading of it in one line gives the same: the lines are for errors only. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/hypernode/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct weft_pods *a, const struct weft_pods *b)
{
    if (a->count != b->count) {
        abort();
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct weft_placement *x = &a->items[i];
        const struct weft_placement *y = &b->items[i];
        if (x->node[0] == '\0' || strchr(x->gang, '/') == NULL || strcmp(x->node, y->node) != 0 ||
            strcmp(x->gang, y->gang) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_pods_done) struct weft_pods pods = {0};
    weft_auto(weft_pods_done) struct weft_pods again = {0};
    struct weft_error err = {0};
    if (weft_pods_parse((const char *)data, size, "pods", &pods, &err) < 0) {
        if (err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    char *flat = malloc(size + 1);
    if (flat == NULL) {
        return 0;
    }
    for (size_t i = 0; i < size; i++) { /* no string of JSON holds a bare newline */
        flat[i] = data[i] == '\n' ? ' ' : (char)data[i];
    }
    if (weft_pods_parse(flat, size, "pods", &again, NULL) < 0) {
        abort();
    }
    check_same(&pods, &again);
    free(flat);
    return 0;
}
