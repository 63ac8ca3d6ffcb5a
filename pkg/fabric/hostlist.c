/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's hostlists to names (slurm.conf(5), "hostlist expressions"; Slurm's src/common/hostlist.c
 * allows several brackets in a name, blanks as separators, and 64 Ki numbers in a range). */
#include "pkg/fabric/hostlist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RANGE_MAX = 64 << 10, DIGITS_MAX = 18 };

/* One name that is being put together: brackets multiply, so the place in each is kept. */
struct item {
    struct weft_str text; /* of the item, in the whole list */
    const char *start;    /* where the whole list begins, for places in messages */
    struct weft_hostlist *list;
    char name[WEFT_HOSTLIST_NAME_MAX + 1];
};

void weft_hostlist_done(struct weft_hostlist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        weft_free(list->names[i]);
    }
    weft_free(list->names);
    *list = (struct weft_hostlist){0};
}

static int refuse(const struct item *item, const char *at, const char *why, struct weft_error *err)
{
    const int shown = item->text.len > 80 ? 80 : (int)item->text.len;
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "hostlist %.*s: %s (character %zu)", shown,
                        item->text.data, why, (size_t)(at - item->start) + 1);
}

static int append(struct weft_hostlist *list, const char *name, size_t len, struct weft_error *err)
{
    void *names = list->names;
    const int rc = weft_array_reserve(&names, &list->cap, list->count + 1, sizeof(char *),
                                      WEFT_HOSTLIST_NAMES_MAX);
    list->names = names;
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d names in a hostlist",
                            (int)WEFT_HOSTLIST_NAMES_MAX);
    }
    char *copy = rc == 0 ? weft_strndup(name, len) : NULL;
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    list->names[list->count++] = copy;
    return 0;
}

/* "01-16" or "20". */
static int parse_range(const struct item *item, struct weft_str range, uint64_t *ret_low,
                       uint64_t *ret_high, struct weft_error *err)
{
    struct weft_str rest = range;
    struct weft_str low = {0};
    (void)weft_str_split(&rest, '-', &low);
    const bool one = low.len == range.len;
    const struct weft_str high = one ? low : rest;
    if (low.len > DIGITS_MAX || high.len > DIGITS_MAX ||
        weft_parse_u64(low, UINT64_MAX, ret_low) < 0 ||
        weft_parse_u64(high, UINT64_MAX, ret_high) < 0) {
        return refuse(item, range.data, "a range is a number or two with \"-\" between", err);
    }
    if (*ret_high < *ret_low) {
        return refuse(item, range.data, "a range runs from the smaller number to the larger", err);
    }
    if (*ret_high - *ret_low >= RANGE_MAX) {
        return refuse(item, range.data, "a range of more than 65536 numbers", err);
    }
    return 0;
}

static int expand(struct item *item, struct weft_str rest, size_t used, unsigned brackets,
                  struct weft_error *err);

/* Every number between the brackets, followed by what comes after them. */
static int expand_bracket(struct item *item, struct weft_str inner, struct weft_str after,
                          size_t used, unsigned brackets, struct weft_error *err)
{
    struct weft_str rest = inner;
    struct weft_str range = {0};
    while (weft_str_split(&rest, ',', &range)) {
        uint64_t low = 0;
        uint64_t high = 0;
        int rc = parse_range(item, range, &low, &high, err);
        const char *dash = memchr(range.data, '-', range.len);
        const int width = (int)(dash != NULL ? (size_t)(dash - range.data) : range.len);
        for (uint64_t n = low; rc == 0 && n <= high; n++) {
            char number[DIGITS_MAX + 2];
            const int len = snprintf(number, sizeof(number), "%0*" PRIu64, width, n);
            if (used + (size_t)len > WEFT_HOSTLIST_NAME_MAX) {
                return refuse(item, range.data, "a name of more than 253 characters", err);
            }
            memcpy(item->name + used, number, (size_t)len);
            rc = expand(item, after, used + (size_t)len, brackets + 1, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* rest of the item, with used bytes of the name made. Recursion as deep as there are brackets. */
static int expand(struct item *item, struct weft_str rest, size_t used, unsigned brackets,
                  struct weft_error *err)
{
    const char *open = rest.len > 0 ? memchr(rest.data, '[', rest.len) : NULL;
    const struct weft_str plain = {rest.data, open != NULL ? (size_t)(open - rest.data) : rest.len};
    if (plain.len > 0 && memchr(plain.data, ']', plain.len) != NULL) {
        return refuse(item, plain.data, "\"]\" without \"[\"", err);
    }
    if (used + plain.len > WEFT_HOSTLIST_NAME_MAX) {
        return refuse(item, rest.data, "a name of more than 253 characters", err);
    }
    memcpy(item->name + used, plain.data, plain.len);
    used += plain.len;
    if (memchr(item->name, '\0', used) != NULL) {
        return refuse(item, rest.data, "a NUL character", err);
    }
    if (open == NULL) {
        return append(item->list, item->name, used, err);
    }
    const size_t left = rest.len - plain.len - 1;
    const char *close = memchr(open + 1, ']', left);
    const char *nested = memchr(open + 1, '[', left);
    if (close == NULL || (nested != NULL && nested < close) || close == open + 1) {
        return refuse(item, open,
                      close == open + 1 ? "nothing between \"[\" and \"]\"" : "\"[\" without \"]\"",
                      err);
    }
    if (brackets == WEFT_HOSTLIST_BRACKETS_MAX) {
        return refuse(item, open, "more than 8 brackets in a name", err);
    }
    const struct weft_str inner = {open + 1, (size_t)(close - open) - 1};
    const struct weft_str after = {close + 1, (size_t)(rest.data + rest.len - close) - 1};
    return expand_bracket(item, inner, after, used, brackets, err);
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next item off *rest: up to a separator outside of brackets. */
static bool next_item(struct weft_str *rest, struct weft_str *ret_item)
{
    size_t from = 0;
    while (from < rest->len && is_separator(rest->data[from])) {
        from++;
    }
    size_t end = from;
    bool inside = false;
    while (end < rest->len && (inside || !is_separator(rest->data[end]))) {
        inside = rest->data[end] == '[' || (inside && rest->data[end] != ']');
        end++;
    }
    *ret_item = (struct weft_str){rest->data + from, end - from};
    rest->data += end;
    rest->len -= end;
    return ret_item->len > 0;
}

int weft_hostlist_add(struct weft_hostlist *list, struct weft_str text, struct weft_error *err)
{
    struct weft_str rest = text;
    struct item item = {.start = text.data, .list = list};
    while (next_item(&rest, &item.text)) {
        const int rc = expand(&item, item.text, 0, 0, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
