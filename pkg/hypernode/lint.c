/* SPDX-License-Identifier: Apache-2.0 */
/* Lint: each check looks at the whole set once and adds what it finds. Reasons and sources of the
 * rules are in docs/hypernodes.md. */
#include "pkg/hypernode/lint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"

enum { TEXT_MAX = 512, NAME_CHARS_MAX = 63, LISTED_MAX = 10000000 };
/* etcd's request limit, less what metadata and status take; a member is some 64 bytes of JSON
 * besides its name */
enum { OBJECT_BYTES_MAX = 1200000, MEMBER_JSON_BYTES = 64 };

struct linter {
    const struct weft_hypernode_set *set;
    struct weft_lint *lint;
    struct weft_map *parent; /* child's name → first item that lists it */
    int status;              /* 0 or -ENOMEM */
};

static const char *const severity_names[WEFT_LINT_SEVERITY_COUNT] = {
    [WEFT_LINT_NOTE] = "note",
    [WEFT_LINT_WARNING] = "warning",
    [WEFT_LINT_ERROR] = "error",
};

const char *weft_lint_severity_name(enum weft_lint_severity severity)
{
    return severity_names[severity];
}

void weft_lint_done(struct weft_lint *lint)
{
    if (lint == NULL) {
        return;
    }
    for (size_t i = 0; i < lint->count; i++) {
        weft_free(lint->findings[i].object);
        weft_free(lint->findings[i].text);
    }
    weft_free(lint->findings);
    *lint = (struct weft_lint){0};
}

/* what is "severity kind": one argument less at each of many calls. kind is static. */
struct rule {
    enum weft_lint_severity severity;
    const char *kind;
};

static void add(struct linter *l, struct rule rule, const char *object, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct linter *l, struct rule rule, const char *object, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    void *list = l->lint->findings;
    const int rc = weft_array_reserve(&list, &l->lint->cap, l->lint->count + 1,
                                      sizeof(l->lint->findings[0]), WEFT_LINT_FINDINGS_MAX);
    l->lint->findings = list;
    if (rc == -EFBIG) {
        return;
    }
    struct weft_lint_finding f = {.severity = rule.severity,
                                  .kind = rule.kind,
                                  .object = weft_strdup(object),
                                  .text = weft_strdup(text)};
    if (rc < 0 || f.object == NULL || f.text == NULL) {
        weft_free(f.object);
        weft_free(f.text);
        l->status = -ENOMEM;
        return;
    }
    l->lint->findings[l->lint->count++] = f;
}

#define ERROR(k) ((struct rule){WEFT_LINT_ERROR, (k)})
#define WARNING(k) ((struct rule){WEFT_LINT_WARNING, (k)})
#define NOTE(k) ((struct rule){WEFT_LINT_NOTE, (k)})

static bool is_child(const struct weft_member *m)
{
    return m->type == WEFT_MEMBER_HYPERNODE && m->selector == WEFT_SELECTOR_EXACT;
}

/* ---- one object ---- */

static void check_name(struct linter *l, const char *object, const char *name, const char *what)
{
    if (!weft_dns_subdomain_valid(name)) {
        add(l, ERROR("bad-name"), object, "%s \"%.63s\" is no name that Kubernetes takes", what,
            name);
    } else if (strlen(name) > NAME_CHARS_MAX) {
        add(l, WARNING("long-name"), object,
            "%s %.80s has %zu characters: Volcano's admission policy and its webhook before v1.14 "
            "refuse members over %d",
            what, name, strlen(name), NAME_CHARS_MAX);
    }
}

/* The admission policy counts characters, whatever the pattern means by them. */
static void check_pattern(struct linter *l, const char *object, const char *pattern)
{
    static const char brackets[][2] = {{'(', ')'}, {'[', ']'}, {'{', '}'}};
    if (pattern[0] == '\0') {
        add(l, ERROR("bad-pattern"), object,
            "a member's pattern is empty: the CRD and Volcano's admission policy refuse it");
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(brackets); i++) {
        size_t open = 0;
        size_t closed = 0;
        for (const char *c = pattern; *c != '\0'; c++) {
            open += *c == brackets[i][0];
            closed += *c == brackets[i][1];
        }
        if (open != closed) {
            add(l, ERROR("bad-pattern"), object,
                "pattern \"%.80s\" has %zu %c and %zu %c: Volcano's admission policy refuses it",
                pattern, open, brackets[i][0], closed, brackets[i][1]);
        }
    }
}

static void check_member(struct linter *l, const struct weft_hypernode *hn,
                         const struct weft_member *m)
{
    switch (m->selector) {
    case WEFT_SELECTOR_EXACT:
        check_name(l, hn->name, m->name, "member");
        break;
    case WEFT_SELECTOR_NONE:
        add(l, ERROR("selector"), hn->name,
            "a member has no selector: it selects nothing, and the admission policy refuses it");
        break;
    case WEFT_SELECTOR_LABEL:
        add(l, WARNING("selector"), hn->name,
            "a member selects by label: a node that loses the label or is deleted stays a member "
            "until the object is touched");
        break;
    case WEFT_SELECTOR_REGEX:
        add(l, NOTE("selector"), hn->name,
            "a member selects by pattern \"%.80s\": the scheduler rebuilds it on every node event",
            m->name);
        check_pattern(l, hn->name, m->name);
        break;
    case WEFT_SELECTOR_COUNT:
        break;
    }
    if (m->type == WEFT_MEMBER_HYPERNODE && m->selector != WEFT_SELECTOR_EXACT) {
        add(l, WARNING("hypernode-selector"), hn->name,
            "a HyperNode member without exactMatch is ignored by the scheduler");
    }
}

static size_t object_bytes(const struct weft_hypernode *hn)
{
    size_t bytes = strlen(weft_hypernode_text(hn->identity));
    for (size_t i = 0; i < hn->member_count; i++) {
        bytes += MEMBER_JSON_BYTES + strlen(hn->members[i].name);
    }
    return bytes;
}

static void check_object(struct linter *l, const struct weft_hypernode *hn)
{
    check_name(l, hn->name, hn->name, "the name");
    if (hn->tier == 0) {
        add(l, WARNING("tier-zero"), hn->name,
            "tier 0: created after its parent it is in no tier index, and fading weights break; "
            "tiers start at 1");
    }
    if (hn->member_count == 0) {
        add(l, ERROR("empty"), hn->name, "has no members: Volcano's webhook and CRD refuse it");
    }
    if (weft_hypernode_text(hn->tier_name)[0] == '\0') {
        add(l, NOTE("no-tier-name"), hn->name,
            "has no tierName: jobs cannot name its tier (a CRD before v1.14 drops the field)");
    }
    if (hn->terminating) {
        add(l, NOTE("terminating"), hn->name, "is being deleted and waits for a finalizer");
    }
    const size_t bytes = object_bytes(hn);
    if (bytes > OBJECT_BYTES_MAX) {
        add(l, ERROR("too-large"), hn->name,
            "has %zu members, some %zu bytes: more than etcd takes in one object", hn->member_count,
            bytes);
    }
    for (size_t i = 0; i < hn->member_count; i++) {
        check_member(l, hn, &hn->members[i]);
    }
}

/* ---- parents and children ---- */

static void check_child(struct linter *l, size_t item, const struct weft_member *m)
{
    const struct weft_hypernode *hn = &l->set->items[item];
    const struct weft_hypernode *child = weft_hypernode_set_get(l->set, m->name);
    size_t other;
    if (weft_map_get(l->parent, m->name, &other)) {
        add(l, ERROR("two-parents"), m->name,
            "is listed by %.63s and %.63s: the scheduler is not ready, and every job with a "
            "topology waits",
            l->set->items[other].name, hn->name);
    } else if (weft_map_put(l->parent, m->name, item) < 0) {
        l->status = -ENOMEM;
    }
    if (child == NULL) {
        add(l, ERROR("missing-child"), hn->name,
            "lists %.63s, which is not there: if it was deleted, the next job with a topology "
            "crashes the scheduler",
            m->name);
    } else if (child->tier >= hn->tier) {
        add(l, WARNING("tier-order"), hn->name,
            "is of tier %" PRId64 ", its child %.63s of tier %" PRId64 ": a parent's must be "
            "higher",
            hn->tier, m->name, child->tier);
    }
}

static void check_children(struct linter *l)
{
    for (size_t i = 0; i < l->set->count; i++) {
        const struct weft_hypernode *hn = &l->set->items[i];
        for (size_t k = 0; k < hn->member_count; k++) {
            if (is_child(&hn->members[k])) {
                check_child(l, i, &hn->members[k]);
            }
        }
    }
}

/* Every cycle leads, by first parents, back to where it began; it is reported at its smallest
 * name. */
static void check_cycles(struct linter *l)
{
    weft_autofree size_t *seen = weft_calloc(l->set->count, sizeof(*seen)); /* walk + 1 */
    if (seen == NULL) {
        l->status = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < l->set->count; i++) {
        size_t at = i;
        bool up = true;
        while (up && seen[at] == 0) {
            seen[at] = i + 1;
            up = weft_map_get(l->parent, l->set->items[at].name, &at);
        }
        if (!up || seen[at] != i + 1) {
            continue; /* ended at a root, or in what an earlier walk saw */
        }
        size_t smallest = at;
        size_t length = 0;
        size_t walk = at;
        do {
            smallest = walk < smallest ? walk : smallest;
            length++;
        } while (weft_map_get(l->parent, l->set->items[walk].name, &walk) && walk != at);
        add(l, ERROR("cycle"), l->set->items[smallest].name,
            "is its own ancestor, over %zu HyperNode%s: the scheduler is not ready", length,
            length == 1 ? "" : "s");
    }
}

/* ---- nodes ---- */

struct listing {
    const char *node;
    const struct weft_hypernode *hn;
};

static int cmp_listing(const void *a, const void *b)
{
    const struct listing *x = a;
    const struct listing *y = b;
    const int order = strcmp(x->node, y->node);
    if (order != 0) {
        return order;
    }
    if (x->hn->tier != y->hn->tier) {
        return x->hn->tier < y->hn->tier ? -1 : 1;
    }
    return strcmp(x->hn->name, y->hn->name);
}

/* All exactMatch nodes with who lists them, sorted by node, tier, name. NULL without memory. */
static struct listing *list_nodes(const struct linter *l, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < l->set->count; i++) {
        count += l->set->items[i].member_count;
    }
    struct listing *list = count <= LISTED_MAX ? weft_calloc(count, sizeof(*list)) : NULL;
    size_t n = 0;
    for (size_t i = 0; list != NULL && i < l->set->count; i++) {
        const struct weft_hypernode *hn = &l->set->items[i];
        for (size_t k = 0; k < hn->member_count; k++) {
            const struct weft_member *m = &hn->members[k];
            if (m->type == WEFT_MEMBER_NODE && m->selector == WEFT_SELECTOR_EXACT) {
                list[n++] = (struct listing){m->name, hn};
            }
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof(*list), cmp_listing);
    }
    *ret_count = n;
    return list;
}

static int64_t lowest_tier(const struct linter *l)
{
    int64_t lowest = INT64_MAX;
    for (size_t i = 0; i < l->set->count; i++) {
        lowest = l->set->items[i].tier < lowest ? l->set->items[i].tier : lowest;
    }
    return lowest;
}

/* Nodes twice in a tier; and per HyperNode the nodes that it lists and the lowest tier does not. */
static void check_listings(struct linter *l, const struct listing *list, size_t count,
                           size_t *shallow)
{
    const int64_t lowest = lowest_tier(l);
    for (size_t i = 0; i < count; i++) {
        const bool first = i == 0 || strcmp(list[i].node, list[i - 1].node) != 0;
        if (first && list[i].hn->tier > lowest) {
            shallow[list[i].hn - l->set->items]++;
        }
        if (!first && list[i].hn->tier == list[i - 1].hn->tier) {
            add(l, WARNING("node-twice"), list[i].node,
                "is in %.63s and %.63s, both of tier %" PRId64 ": which one counts is random",
                list[i - 1].hn->name, list[i].hn->name, list[i].hn->tier);
        }
    }
    for (size_t i = 0; i < l->set->count; i++) {
        if (shallow[i] > 0) {
            add(l, WARNING("mixed-depth"), l->set->items[i].name,
                "%zu of its nodes are in no HyperNode of the lowest tier %" PRId64
                ": jobs with a topology prefer all others to them",
                shallow[i], lowest);
        }
    }
}

static void check_nodes(struct linter *l)
{
    size_t count = 0;
    weft_autofree struct listing *list = list_nodes(l, &count);
    weft_autofree size_t *shallow = weft_calloc(l->set->count, sizeof(*shallow));
    if (list == NULL || shallow == NULL) {
        l->status = -ENOMEM;
        return;
    }
    check_listings(l, list, count, shallow);
}

/* ---- tiers ---- */

static void check_tier_names(struct linter *l)
{
    weft_auto(weft_map_free) struct weft_map *first = weft_map_new(WEFT_HYPERNODES_MAX);
    if (first == NULL) {
        l->status = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < l->set->count; i++) {
        const struct weft_hypernode *hn = &l->set->items[i];
        const char *name = weft_hypernode_text(hn->tier_name);
        size_t other;
        if (name[0] == '\0') {
            continue;
        }
        if (!weft_map_get(first, name, &other)) {
            l->status = weft_map_put(first, name, i) < 0 ? -ENOMEM : l->status;
        } else if (l->set->items[other].tier != hn->tier) {
            add(l, WARNING("tier-name-clash"), name,
                "tier %" PRId64 " at %.63s and tier %" PRId64 " at %.63s: which one a job gets is "
                "random",
                l->set->items[other].tier, l->set->items[other].name, hn->tier, hn->name);
        }
    }
}

static void check_tier_gaps(struct linter *l)
{
    weft_autofree struct weft_hypernode_ref *order = weft_hypernode_set_ascending(l->set);
    if (order == NULL) {
        l->status = -ENOMEM;
        return;
    }
    int64_t before = 0;
    for (size_t i = 0; i < l->set->count; i++) {
        const int64_t tier = order[i].hn->tier;
        if (tier > before + 1) {
            char text[32];
            (void)snprintf(text, sizeof(text), "%" PRId64, tier);
            add(l, NOTE("tier-gap"), text,
                "there is no tier %" PRId64 ": the scheduler walks every number up to the highest",
                before + 1);
        }
        before = tier;
    }
}

/* ---- all ---- */

static int cmp_finding(const void *a, const void *b)
{
    const struct weft_lint_finding *x = a;
    const struct weft_lint_finding *y = b;
    if (x->severity != y->severity) {
        return x->severity > y->severity ? -1 : 1;
    }
    int order = strcmp(x->kind, y->kind);
    order = order != 0 ? order : strcmp(x->object, y->object);
    return order != 0 ? order : strcmp(x->text, y->text);
}

int weft_lint_run(const struct weft_hypernode_set *set, struct weft_lint *ret_lint,
                  struct weft_error *err)
{
    weft_auto(weft_lint_done) struct weft_lint lint = {0};
    weft_auto(weft_map_free) struct weft_map *parent = weft_map_new(LISTED_MAX);
    if (parent == NULL) {
        return weft_err_nomem(err);
    }
    struct linter l = {.set = set, .lint = &lint, .parent = parent};
    for (size_t i = 0; i < set->count; i++) {
        check_object(&l, &set->items[i]);
    }
    check_children(&l);
    check_cycles(&l);
    check_nodes(&l);
    check_tier_names(&l);
    check_tier_gaps(&l);
    if (l.status < 0) {
        return weft_err_nomem(err);
    }
    if (lint.count > 1) {
        qsort(lint.findings, lint.count, sizeof(lint.findings[0]), cmp_finding);
    }
    *ret_lint = lint;
    lint = (struct weft_lint){0};
    return 0;
}
