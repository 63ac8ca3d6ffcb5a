/* SPDX-License-Identifier: Apache-2.0 */
/* Declared sets: from rows in any order to nodes in order, and from several sets to one. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/node.h"

void weft_declared_free(struct weft_declared *declared)
{
    if (declared == NULL) {
        return;
    }
    for (size_t n = 0; declared->nodes != NULL && n < declared->node_count; n++) {
        weft_free(declared->nodes[n]);
    }
    for (size_t i = 0;
         declared->values != NULL && i < declared->node_count * declared->levels.count; i++) {
        weft_free(declared->values[i]);
    }
    for (size_t i = 0; i < declared->warning_count; i++) {
        weft_free(declared->warnings[i]);
    }
    weft_free(declared->nodes);
    weft_free(declared->values);
    weft_free(declared->source);
    weft_free(declared->warnings);
    weft_label_levels_done(&declared->levels);
    weft_free(declared);
}

/* ---- warnings ---- */

void weft_warnings_done(struct weft_warnings *warnings)
{
    for (size_t i = 0; i < warnings->count; i++) {
        weft_free(warnings->items[i]);
    }
    weft_free(warnings->items);
    *warnings = (struct weft_warnings){0};
}

void weft_warn(struct weft_warnings *warnings, const char *source, unsigned line,
               const char *format, ...)
{
    char message[WEFT_ERROR_MESSAGE_MAX];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    warnings->total++;
    void *items = warnings->items;
    if (weft_array_reserve(&items, &warnings->cap, warnings->count + 1, sizeof(char *),
                           WEFT_DECLARED_WARNINGS_MAX) < 0) {
        return;
    }
    warnings->items = items;
    char *text = line > 0 ? weft_asprintf("%s:%u: %s", source, line, message)
                          : weft_asprintf("%s: %s", source, message);
    if (text != NULL) {
        warnings->items[warnings->count++] = text;
    }
}

/* ---- rows ---- */

static void row_done(struct weft_row *row)
{
    weft_free(row->node);
    for (size_t l = 0; l < WEFT_LEVELS_MAX; l++) {
        weft_free(row->values[l]);
    }
}

void weft_rows_done(struct weft_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        row_done(&rows->items[i]);
    }
    weft_free(rows->items);
    weft_warnings_done(&rows->warnings);
    *rows = (struct weft_rows){0};
}

int weft_rows_add(struct weft_rows *rows, struct weft_str node, unsigned line,
                  struct weft_row **ret_row, struct weft_error *err)
{
    void *items = rows->items;
    const int rc = weft_array_reserve(&items, &rows->cap, rows->count + 1, sizeof(*rows->items),
                                      WEFT_NODES_MAX);
    rows->items = items;
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: more than %d nodes", rows->source,
                            (int)WEFT_NODES_MAX);
    }
    char *name = rc == 0 ? weft_strndup(node.data, node.len) : NULL;
    if (name == NULL) {
        return weft_err_nomem(err);
    }
    rows->items[rows->count] = (struct weft_row){.node = name, .line = line};
    *ret_row = &rows->items[rows->count++];
    return 0;
}

int weft_row_set(struct weft_row *row, size_t level, struct weft_str value)
{
    char *text = value.len > 0 ? weft_strndup(value.data, value.len) : NULL;
    if (value.len > 0 && text == NULL) {
        return -ENOMEM;
    }
    weft_free(row->values[level]);
    row->values[level] = text;
    return 0;
}

int weft_rows_levels(size_t count, const char *const *tiers, size_t tier_count,
                     const char *const *defaults, struct weft_label_levels *ret_levels,
                     struct weft_error *err)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    size_t known = 0;
    while (tiers == NULL && defaults[known] != NULL) {
        known++;
    }
    for (size_t l = 0; l < count; l++) {
        char made[32];
        (void)snprintf(made, sizeof(made), "tier-%zu", l + 1);
        const char *name =
            tiers != NULL ? (l < tier_count ? tiers[l] : made) : (l < known ? defaults[l] : made);
        const int rc = weft_label_levels_add(&levels, name, name, err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret_levels = levels;
    levels = (struct weft_label_levels){0};
    return 0;
}

/* Farthest level first, as a path reads; a level that is there before one that is not. */
static int compare_chain(const struct weft_row *x, const struct weft_row *y)
{
    for (size_t l = WEFT_LEVELS_MAX; l-- > 0;) {
        if (x->values[l] == NULL || y->values[l] == NULL) {
            if (x->values[l] != y->values[l]) {
                return x->values[l] != NULL ? -1 : 1;
            }
            continue;
        }
        const int cmp = weft_str_natural_cmp(x->values[l], y->values[l]);
        if (cmp != 0) {
            return cmp;
        }
    }
    return 0;
}

static int compare_row(const void *a, const void *b)
{
    const struct weft_row *x = a;
    const struct weft_row *y = b;
    const int cmp = strcmp(x->node, y->node);
    const int chain = cmp != 0 ? cmp : compare_chain(x, y);
    return chain != 0 ? chain : (x->line > y->line) - (x->line < y->line);
}

static const char *closest(const struct weft_row *row)
{
    for (size_t l = 0; l < WEFT_LEVELS_MAX; l++) {
        if (row->values[l] != NULL) {
            return row->values[l];
        }
    }
    return "no group";
}

/* Drops all but the first row of each node; sorted before. */
static void join_doubles(struct weft_rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct weft_row *row = &rows->items[i];
        struct weft_row *before = kept > 0 ? &rows->items[kept - 1] : NULL;
        if (before == NULL || strcmp(before->node, row->node) != 0) {
            rows->items[kept++] = *row;
            continue;
        }
        if (compare_chain(before, row) != 0) {
            char place[32] = "";
            if (before->line > 0) {
                (void)snprintf(place, sizeof(place), "(line %u) ", before->line);
            }
            weft_warn(&rows->warnings, rows->source, row->line,
                      "node %.80s is in %.60s and %sin %.60s; weft keeps %.60s", row->node,
                      closest(row), place, closest(before), closest(before));
        }
        row_done(row);
    }
    rows->count = kept;
}

int weft_rows_finish(struct weft_rows *rows, struct weft_label_levels *levels,
                     enum weft_names_kind names, struct weft_declared **ret_declared,
                     struct weft_error *err)
{
    weft_auto(weft_declared_free) struct weft_declared *declared =
        weft_calloc(1, sizeof(*declared));
    if (declared == NULL) {
        return weft_err_nomem(err);
    }
    if (rows->count > 0) {
        qsort(rows->items, rows->count, sizeof(*rows->items), compare_row);
        join_doubles(rows);
    }
    declared->source = weft_strdup(rows->source);
    declared->nodes = weft_calloc(rows->count, sizeof(char *));
    declared->values = weft_calloc(rows->count * levels->count, sizeof(char *));
    if (declared->source == NULL || declared->nodes == NULL || declared->values == NULL) {
        return weft_err_nomem(err);
    }
    declared->node_count = rows->count;
    for (size_t n = 0; n < rows->count; n++) {
        declared->nodes[n] = weft_steal(&rows->items[n].node);
        for (size_t l = 0; l < levels->count; l++) {
            declared->values[n * levels->count + l] = weft_steal(&rows->items[n].values[l]);
        }
    }
    declared->levels = *levels;
    *levels = (struct weft_label_levels){0};
    declared->names = names;
    declared->warnings = rows->warnings.items;
    declared->warning_count = rows->warnings.count;
    declared->warning_total = rows->warnings.total;
    rows->warnings = (struct weft_warnings){0};
    declared->partial = rows->partial;
    *ret_declared = weft_steal(&declared);
    return 0;
}

/* ---- several sets ---- */

static bool same_levels(const struct weft_label_levels *a, const struct weft_label_levels *b)
{
    bool same = a->count == b->count;
    for (size_t l = 0; same && l < a->count; l++) {
        same = strcmp(a->items[l].key, b->items[l].key) == 0 &&
               strcmp(a->items[l].tier, b->items[l].tier) == 0;
    }
    return same;
}

static int add_part(struct weft_rows *rows, const struct weft_declared *part,
                    struct weft_error *err)
{
    for (size_t n = 0; n < part->node_count; n++) {
        struct weft_row *row = NULL;
        int rc = weft_rows_add(rows, weft_str(part->nodes[n]), 0, &row, err);
        for (size_t l = 0; rc == 0 && l < part->levels.count; l++) {
            const char *value = part->values[n * part->levels.count + l];
            if (weft_row_set(row, l, weft_str(value != NULL ? value : "")) < 0) {
                rc = weft_err_nomem(err);
            }
        }
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < part->warning_count; i++) {
        weft_warn(&rows->warnings, rows->source, 0, "%s", part->warnings[i]);
    }
    rows->warnings.total += part->warning_total - part->warning_count;
    rows->partial = rows->partial || part->partial;
    return 0;
}

int weft_declared_join(const struct weft_declared *const *parts, size_t count, const char *source,
                       struct weft_declared **ret_declared, struct weft_error *err)
{
    weft_auto(weft_rows_done) struct weft_rows rows = {.source = source};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    if (count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: nothing to join", source);
    }
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < count; p++) {
        if (parts[p]->names != parts[0]->names ||
            !same_levels(&parts[p]->levels, &parts[0]->levels)) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s: %s has other levels or kinds of names than %s", source,
                                parts[p]->source != NULL ? parts[p]->source : "a part",
                                parts[0]->source != NULL ? parts[0]->source : "the first");
        }
        rc = add_part(&rows, parts[p], err);
    }
    for (size_t l = 0; rc == 0 && l < parts[0]->levels.count; l++) {
        const struct weft_label_level *level = &parts[0]->levels.items[l];
        rc = weft_label_levels_add(&levels, level->key, level->tier, err);
    }
    return rc < 0 ? rc : weft_rows_finish(&rows, &levels, parts[0]->names, ret_declared, err);
}
