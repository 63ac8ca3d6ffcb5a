/* SPDX-License-Identifier: Apache-2.0 */
/* Compares refusals with what was accepted; reads both from their ConfigMaps. */
#include "pkg/apply/refusal.h"

#include <string.h>
#include <time.h>

#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"

enum { HASH_LEN = WEFT_REFUSAL_HASH_MAX - 1 };

const char *weft_refusal_kind_name(enum weft_refusal_kind kind)
{
    static const char *const names[WEFT_REFUSAL_KIND_COUNT] = {
        [WEFT_REFUSAL_BRAKE] = "brake",
        [WEFT_REFUSAL_TIERS] = "tiers",
        [WEFT_REFUSAL_FOREIGN] = "foreign-tier",
        [WEFT_REFUSAL_MOVE] = "move",
    };
    return names[kind];
}

bool weft_refusal_accepted(const struct weft_refusal *refusal,
                           const struct weft_acceptance *accepted, size_t count, size_t *ret_index)
{
    for (size_t i = 0; i < count; i++) {
        const struct weft_acceptance *a = &accepted[i];
        if (strcmp(a->hash, refusal->hash) == 0 ||
            (a->target[0] != '\0' && strcmp(a->target, refusal->target) == 0)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* ---- what the status shows ---- */

static bool is_hash(struct weft_str text)
{
    uint64_t value = 0;
    return text.len == HASH_LEN && weft_parse_hex64(text, &value) == 0;
}

static bool read_hash(const struct weft_json *change, const char *key,
                      char ret_hash[WEFT_REFUSAL_HASH_MAX])
{
    const char *text = weft_json_string(weft_json_get(change, key));
    if (text == NULL || !is_hash(weft_str(text))) {
        return false;
    }
    memcpy(ret_hash, text, HASH_LEN);
    return true;
}

static bool read_kind(const struct weft_json *change, enum weft_refusal_kind *ret_kind)
{
    const char *text = weft_json_string(weft_json_get(change, "kind"));
    for (int kind = 0; text != NULL && kind < WEFT_REFUSAL_KIND_COUNT; kind++) {
        if (strcmp(weft_refusal_kind_name((enum weft_refusal_kind)kind), text) == 0) {
            *ret_kind = (enum weft_refusal_kind)kind;
            return true;
        }
    }
    return false;
}

static void read_changes(const struct weft_json *document, struct weft_refusals *refusals)
{
    const struct weft_json *all = weft_json_get(document, "refusedChanges");
    for (size_t i = 0; i < weft_json_count(all) && refusals->count < WEFT_REFUSALS_MAX; i++) {
        const struct weft_json *change = weft_json_at(all, i);
        const char *text = weft_json_string(weft_json_get(change, "text"));
        struct weft_refusal r = {0};
        if (!read_hash(change, "hash", r.hash) || !read_kind(change, &r.kind)) {
            continue;
        }
        (void)read_hash(change, "target", r.target);
        const size_t len = text != NULL ? strnlen(text, sizeof(r.text) - 1) : 0;
        memcpy(r.text, text != NULL ? text : "", len);
        refusals->items[refusals->count++] = r;
    }
}

void weft_refusals_read(const struct weft_json *configmap, struct weft_refusals *ret_refusals)
{
    const struct weft_json *data = weft_json_get(configmap, "data");
    const char *text = weft_json_string(weft_json_get(data, WEFT_STATUS_DOCUMENT));
    weft_auto(weft_json_free) struct weft_json *document = NULL;
    ret_refusals->count = 0;
    if (text != NULL &&
        weft_json_parse(text, strlen(text), WEFT_STATUS_DOCUMENT, &document, NULL) == 0) {
        read_changes(document, ret_refusals);
    }
}

/* ---- what is accepted ---- */

/* What is no time says nothing. */
static bool too_old(struct weft_str time, int64_t now)
{
    char text[WEFT_TIME_TEXT_MAX] = "";
    struct tm tm = {0};
    memcpy(text, time.data, time.len < sizeof(text) ? time.len : 0);
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) != NULL &&
           now / WEFT_NS_PER_S - (int64_t)timegm(&tm) > WEFT_ACCEPTED_GOOD_FOR_S;
}

size_t weft_accepted_read(const struct weft_json *configmap, int64_t now,
                          struct weft_acceptance accepted[WEFT_ACCEPTANCES_MAX])
{
    const struct weft_json *data = weft_json_get(configmap, "data");
    size_t count = 0;
    for (size_t i = 0; i < weft_json_count(data) && count < WEFT_ACCEPTANCES_MAX; i++) {
        const struct weft_json *item = weft_json_at(data, i);
        const char *value = weft_json_string(item);
        struct weft_acceptance a = {0};
        struct weft_str rest = weft_str(value != NULL ? value : "");
        struct weft_str word;
        bool old = false;
        if (!is_hash(weft_str(weft_json_key(item)))) {
            continue;
        }
        while (weft_str_word(&rest, &word)) {
            old = old || too_old(word, now);
            if (is_hash(word)) {
                memcpy(a.target, word.data, HASH_LEN);
            }
        }
        memcpy(a.hash, weft_json_key(item), HASH_LEN);
        if (!old) {
            accepted[count++] = a;
        }
    }
    return count;
}

bool weft_refusal_is_hash(const char *text)
{
    return is_hash(weft_str(text));
}
