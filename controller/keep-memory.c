/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered from pass to pass: since when a Node has been missing or on its way to another
 * place, and the epoch of the cabling. Decides nothing. */
#include <errno.h>
#include <string.h>

#include "controller/keep-internal.h"
#include "controller/keep.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"

enum { NOTES_MAX = 200000 };

/* A source's looks in which a new cabling counts at once: the one under way when the epoch changed,
 * and the first one begun after. */
enum { EPOCH_LOOKS = 2 };

struct weft_keep {
    struct weft_map *index; /* node name → entry */
    struct weft_keep_note *entries;
    size_t count;
    size_t cap;
    uint64_t pass;
    char *epoch;                                    /* NULL: none was seen */
    uint64_t freed_tiers;                           /* see weft_keep_freed_tiers */
    uint64_t open_until[WEFT_KEEP_SOURCES_MAX + 1]; /* by source: its look; 0: no change yet */
};

struct weft_keep *weft_keep_new(void)
{
    struct weft_keep *keep = weft_calloc(1, sizeof(*keep));
    if (keep == NULL) {
        return NULL;
    }
    keep->index = weft_map_new(NOTES_MAX);
    if (keep->index == NULL) {
        weft_free(keep);
        return NULL;
    }
    return keep;
}

void weft_keep_free(struct weft_keep *keep)
{
    if (keep == NULL) {
        return;
    }
    weft_map_free(keep->index);
    weft_free(keep->entries);
    weft_free(keep->epoch);
    weft_free(keep);
}

static uint64_t look_of(const struct weft_keep *keep, const struct weft_keep_input *input,
                        size_t source)
{
    return source < input->look_count ? input->looks[source] : keep->pass;
}

int weft_keep_begin(struct weft_keep *keep, const struct weft_keep_input *input)
{
    const char *epoch = input->epoch != NULL ? input->epoch : "";
    keep->pass++;
    if (keep->epoch != NULL && strcmp(keep->epoch, epoch) == 0) {
        return 0;
    }
    char *copy = weft_strdup(epoch);
    if (copy == NULL) {
        return -ENOMEM;
    }
    for (size_t s = 0; s <= WEFT_KEEP_SOURCES_MAX && keep->epoch != NULL; s++) {
        keep->open_until[s] = look_of(keep, input, s) + EPOCH_LOOKS;
    }
    weft_free(keep->epoch);
    keep->epoch = copy;
    return 0;
}

bool weft_keep_is_open(const struct weft_keep *keep, const struct weft_keep_input *input,
                       size_t source)
{
    return keep->open_until[source] > 0 && look_of(keep, input, source) <= keep->open_until[source];
}

static int add_note(struct weft_keep *keep, const char *node, size_t *ret_at)
{
    void *list = keep->entries;
    int rc =
        weft_array_reserve(&list, &keep->cap, keep->count + 1, sizeof(*keep->entries), NOTES_MAX);
    keep->entries = list;
    rc = rc < 0 ? rc : weft_map_put(keep->index, node, keep->count);
    if (rc < 0) {
        return rc;
    }
    *ret_at = keep->count++;
    keep->entries[*ret_at] = (struct weft_keep_note){0};
    return 0;
}

int weft_keep_take_note(struct weft_keep *keep, const struct weft_keep_input *input,
                        const struct weft_keep_node *node, uint64_t target,
                        const struct weft_keep_note **ret_note)
{
    const size_t source =
        node->source < WEFT_KEEP_SOURCES_MAX ? node->source : WEFT_KEEP_SOURCES_MAX;
    const uint64_t look = look_of(keep, input, source);
    size_t at = 0;
    const bool known = weft_map_get(keep->index, node->name, &at);
    const int rc = known ? 0 : add_note(keep, node->name, &at);
    if (rc < 0) {
        return rc;
    }
    struct weft_keep_note *note = &keep->entries[at];
    if (!known || note->target != target) {
        *note = (struct weft_keep_note){.since = input->options->now, .target = target};
    }
    if (note->times == 0 || note->look != look) {
        note->times++;
        note->look = look;
    }
    note->pass = keep->pass;
    *ret_note = note;
    return 0;
}

bool weft_keep_was_freed(const struct weft_keep *keep, const char *node, uint64_t target)
{
    size_t at = 0;
    return weft_map_get(keep->index, node, &at) && keep->entries[at].freed &&
           keep->entries[at].target == target;
}

int weft_keep_free_node(struct weft_keep *keep, const struct weft_keep_input *input,
                        const struct weft_keep_node *node, uint64_t target)
{
    const struct weft_keep_note *note = NULL;
    size_t at = 0;
    const int rc = weft_keep_take_note(keep, input, node, target, &note);
    if (rc == 0 && weft_map_get(keep->index, node->name, &at)) {
        keep->entries[at].freed = true;
    }
    return rc;
}

uint64_t *weft_keep_freed_tiers(struct weft_keep *keep)
{
    return &keep->freed_tiers;
}

int weft_keep_end(struct weft_keep *keep)
{
    weft_auto(weft_map_free) struct weft_map *index = weft_map_new(NOTES_MAX);
    if (index == NULL) {
        return -ENOMEM;
    }
    weft_autofree struct weft_keep_note *entries = weft_calloc(keep->count + 1, sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    size_t pos = 0;
    const char *name = NULL;
    size_t at = 0;
    while (weft_map_next(keep->index, &pos, &name, &at)) {
        if (keep->entries[at].pass != keep->pass) {
            continue;
        }
        const int rc = weft_map_put(index, name, count);
        if (rc < 0) {
            return rc;
        }
        entries[count++] = keep->entries[at];
    }
    weft_map_free(keep->index);
    weft_free(keep->entries);
    keep->index = weft_steal(&index);
    keep->entries = weft_steal(&entries);
    keep->cap = keep->count + 1;
    keep->count = count;
    return 0;
}
