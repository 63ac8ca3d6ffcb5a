/* SPDX-License-Identifier: Apache-2.0 */
/* Compares refusals with what was accepted; writes and reads them as lines. */
#include "pkg/apply/refusal.h"

#include <string.h>
#include <time.h>

#include "pkg/base/buf.h"
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

/* ---- as text ---- */

void weft_refusals_write(const struct weft_refusals *refusals, struct weft_buf *buf)
{
    for (size_t i = 0; i < refusals->count; i++) {
        const struct weft_refusal *r = &refusals->items[i];
        (void)weft_buf_printf(buf, "%s %s %s %s\n", r->hash, r->target[0] != '\0' ? r->target : "-",
                              weft_refusal_kind_name(r->kind), r->text);
    }
}

static bool read_hash(struct weft_str *rest, bool may_lack, char ret_hash[WEFT_REFUSAL_HASH_MAX])
{
    struct weft_str word;
    uint64_t value = 0;
    if (!weft_str_word(rest, &word)) {
        return false;
    }
    if (may_lack && word.len == 1 && word.data[0] == '-') {
        return true;
    }
    if (word.len != WEFT_REFUSAL_HASH_MAX - 1 || weft_parse_hex64(word, &value) < 0) {
        return false;
    }
    memcpy(ret_hash, word.data, word.len);
    return true;
}

static bool read_kind(struct weft_str *rest, enum weft_refusal_kind *ret_kind)
{
    struct weft_str word;
    if (!weft_str_word(rest, &word)) {
        return false;
    }
    for (int kind = 0; kind < WEFT_REFUSAL_KIND_COUNT; kind++) {
        const char *name = weft_refusal_kind_name((enum weft_refusal_kind)kind);
        if (strlen(name) == word.len && memcmp(name, word.data, word.len) == 0) {
            *ret_kind = (enum weft_refusal_kind)kind;
            return true;
        }
    }
    return false;
}

bool weft_refusal_read(const char *line, size_t len, struct weft_refusal *ret_refusal)
{
    struct weft_refusal r = {0};
    struct weft_str rest = {.data = line, .len = len};
    if (!read_hash(&rest, false, r.hash) || !read_hash(&rest, true, r.target) ||
        !read_kind(&rest, &r.kind)) {
        return false;
    }
    const struct weft_str text = weft_str_trim(rest);
    memcpy(r.text, text.data, text.len < sizeof(r.text) ? text.len : sizeof(r.text) - 1);
    *ret_refusal = r;
    return true;
}

/* ---- what is accepted ---- */

static bool is_hash(struct weft_str text)
{
    uint64_t value = 0;
    return text.len == HASH_LEN && weft_parse_hex64(text, &value) == 0;
}

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
