/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over pointers to the texts; a removed one is closed up, so that no text that
 * comes and goes leaves anything behind. */
#include "pkg/base/intern.h"

#include <stdint.h>
#include <string.h>

#include "pkg/base/str.h"

enum { INTERN_MAGIC = 0x496e5478 /* "InTx" */, SLOTS_MIN = 64 };

struct text {
    uint64_t hash;
    uint32_t magic;
    uint32_t refs;
    char bytes[];
};

struct weft_intern {
    struct text **slots;
    size_t slot_count; /* power of two, or 0 */
    size_t count;
    size_t max;
};

struct weft_intern *weft_intern_new(size_t max)
{
    struct weft_intern *intern = weft_calloc(1, sizeof(*intern));
    if (intern != NULL) {
        intern->max = max;
    }
    return intern;
}

void weft_intern_free(struct weft_intern *intern)
{
    if (intern == NULL) {
        return;
    }
    for (size_t i = 0; i < intern->slot_count; i++) {
        weft_free(intern->slots[i]);
    }
    weft_free(intern->slots);
    weft_free(intern);
}

size_t weft_intern_count(const struct weft_intern *intern)
{
    return intern->count;
}

/* Where the text stands, or the free slot where it would. */
static size_t find(const struct weft_intern *intern, const char *text, uint64_t hash)
{
    size_t at = (size_t)hash & (intern->slot_count - 1);
    while (intern->slots[at] != NULL &&
           (intern->slots[at]->hash != hash || strcmp(intern->slots[at]->bytes, text) != 0)) {
        at = (at + 1) & (intern->slot_count - 1);
    }
    return at;
}

/* At most three quarters are in use, so that a search always ends. */
static int make_room(struct weft_intern *intern)
{
    if (intern->count < intern->slot_count / 4 * 3) {
        return 0;
    }
    const size_t old_count = intern->slot_count;
    struct text **old = intern->slots;
    const size_t count = old_count > 0 ? old_count * 2 : SLOTS_MIN;
    struct text **slots = weft_calloc(count, sizeof(struct text *));
    if (slots == NULL) {
        return -1;
    }
    intern->slots = slots;
    intern->slot_count = count;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i] != NULL) {
            slots[find(intern, old[i]->bytes, old[i]->hash)] = old[i];
        }
    }
    weft_free(old);
    return 0;
}

const char *weft_intern_ref(struct weft_intern *intern, const char *text)
{
    const size_t len = strlen(text);
    const uint64_t hash = weft_hash_in_memory(text, len);
    if (make_room(intern) < 0) {
        return NULL;
    }
    struct text **slot = &intern->slots[find(intern, text, hash)];
    if (*slot == NULL) {
        struct text *added =
            intern->count < intern->max ? weft_malloc(sizeof(*added) + len + 1) : NULL;
        if (added == NULL) {
            return NULL;
        }
        *added = (struct text){.hash = hash, .magic = INTERN_MAGIC};
        memcpy(added->bytes, text, len + 1);
        *slot = added;
        intern->count++;
    }
    (*slot)->refs++;
    return (*slot)->bytes;
}

/* Takes the text of a slot out and moves up those behind it that a search would now miss. */
static void take_out(struct weft_intern *intern, size_t at)
{
    const size_t mask = intern->slot_count - 1;
    weft_free(intern->slots[at]);
    intern->slots[at] = NULL;
    intern->count--;
    for (size_t i = (at + 1) & mask; intern->slots[i] != NULL; i = (i + 1) & mask) {
        const size_t home = (size_t)intern->slots[i]->hash & mask;
        /* home cyclically in (at, i]: it is found where it stands */
        if (((i - home) & mask) >= ((i - at) & mask)) {
            intern->slots[at] = intern->slots[i];
            intern->slots[i] = NULL;
            at = i;
        }
    }
}

void weft_intern_unref(struct weft_intern *intern, const char *text)
{
    if (text == NULL) {
        return;
    }
    union {
        const char *in;
        char *out;
    } cast = {.in = text};
    void *start = cast.out - offsetof(struct text, bytes);
    struct text *held = start;
    WEFT_CHECK(held, INTERN_MAGIC);
    if (--held->refs == 0) {
        take_out(intern, find(intern, held->bytes, held->hash));
    }
}
