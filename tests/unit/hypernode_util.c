/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/hypernode_util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"

static void need(bool held)
{
    if (!held) {
        (void)fprintf(stderr, "test helper out of memory, or used wrongly\n");
        abort();
    }
}

static void add_word(struct weft_hypernode *hn, struct weft_str word)
{
    static const struct {
        const char *prefix;
        enum weft_member_type type;
        enum weft_selector selector;
    } kinds[] = {
        {"n:", WEFT_MEMBER_NODE, WEFT_SELECTOR_EXACT},
        {"h:", WEFT_MEMBER_HYPERNODE, WEFT_SELECTOR_EXACT},
        {"re:", WEFT_MEMBER_NODE, WEFT_SELECTOR_REGEX},
        {"label:", WEFT_MEMBER_NODE, WEFT_SELECTOR_LABEL},
        {"none:", WEFT_MEMBER_NODE, WEFT_SELECTOR_NONE},
        {"hre:", WEFT_MEMBER_HYPERNODE, WEFT_SELECTOR_REGEX},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
        if (weft_str_starts(word, kinds[i].prefix)) {
            const size_t skip = strlen(kinds[i].prefix);
            weft_autofree char *name = weft_strndup(word.data + skip, word.len - skip);
            need(name != NULL &&
                 weft_hypernode_add_member(hn, kinds[i].type, kinds[i].selector, name) == 0);
            return;
        }
    }
    need(false);
}

static struct weft_hypernode make(const char *name, int64_t tier, const char *members,
                                  const char *source, const char *managed_by)
{
    struct weft_hypernode hn = {.tier = tier};
    weft_autofree char *tier_name = weft_asprintf("tier%" PRId64, tier);
    need(tier_name != NULL && weft_hypernode_set_text(&hn.name, name) == 0 &&
         weft_hypernode_set_text(&hn.tier_name, tier_name) == 0 &&
         weft_hypernode_set_text(&hn.source, source) == 0 &&
         weft_hypernode_set_text(&hn.managed_by, managed_by) == 0 &&
         weft_hypernode_set_text(&hn.instance, managed_by[0] != '\0' ? "test" : "") == 0 &&
         weft_hypernode_set_text(&hn.identity, "") == 0 &&
         weft_hypernode_set_text(&hn.uid, "") == 0 &&
         weft_hypernode_set_text(&hn.resource_version, "") == 0);
    struct weft_str rest = weft_str(members);
    struct weft_str word;
    while (weft_str_word(&rest, &word)) {
        add_word(&hn, word);
    }
    weft_hypernode_sort(&hn);
    return hn;
}

struct weft_hypernode hn_make(const char *name, int64_t tier, const char *members)
{
    return make(name, tier, members, WEFT_LABEL_SOURCE_VALUE, WEFT_LABEL_MANAGED_BY_VALUE);
}

void hn_put(struct weft_hypernode_set *set, const char *name, int64_t tier, const char *members)
{
    struct weft_hypernode hn = hn_make(name, tier, members);
    need(weft_hypernode_set_put(set, &hn) == 0);
}

void hn_put_foreign(struct weft_hypernode_set *set, const char *name, int64_t tier,
                    const char *members)
{
    struct weft_hypernode hn = make(name, tier, members, "label", "");
    need(weft_hypernode_set_put(set, &hn) == 0);
}

char *hn_dump(const struct weft_hypernode_set *set)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 64U << 20);
    (void)weft_buf_puts(&buf, "");
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = &set->items[i];
        (void)weft_buf_printf(&buf, "%s %" PRId64, hn->name, hn->tier);
        for (size_t k = 0; k < hn->member_count; k++) {
            static const char *const selectors[] = {"", "re:", "label:", "none:"};
            (void)weft_buf_printf(&buf, " %s%s%s",
                                  hn->members[k].type == WEFT_MEMBER_NODE ? "n:" : "h:",
                                  selectors[hn->members[k].selector], hn->members[k].name);
        }
        (void)weft_buf_puts(&buf, "\n");
    }
    char *text = weft_buf_steal(&buf);
    need(text != NULL);
    weft_buf_done(&buf);
    return text;
}

/* ---- trees ---- */

static char *word_text(struct weft_str word)
{
    char *text = weft_strndup(word.data, word.len);
    need(text != NULL);
    return text;
}

static void *grow(void *list, size_t count, size_t size)
{
    void *grown = weft_reallocarray(list, count, size);
    need(grown != NULL);
    return grown;
}

static size_t find_group(struct weft_tree_tier *tier, struct weft_str name)
{
    for (size_t i = 0; i < tier->group_count; i++) {
        if (weft_str_eq(name, tier->groups[i].name)) {
            return i;
        }
    }
    tier->groups = grow(tier->groups, tier->group_count + 1, sizeof(tier->groups[0]));
    char *text = word_text(name);
    char *identity = weft_asprintf("%s=%s", tier->name, text);
    need(identity != NULL);
    tier->groups[tier->group_count] =
        (struct weft_tree_group){.name = text, .identity = identity, .parent = WEFT_TREE_NONE};
    return tier->group_count++;
}

static void add_node(struct weft_tree *tree, struct weft_str line)
{
    struct weft_str word;
    if (!weft_str_word(&line, &word)) {
        return;
    }
    char *name = word_text(word);
    if (weft_str_eq(weft_str_trim(line), "?")) {
        tree->unplaced = grow(tree->unplaced, tree->unplaced_count + 1, sizeof(char *));
        tree->unplaced[tree->unplaced_count++] = name;
        return;
    }
    const size_t at = tree->node_count++;
    tree->nodes = grow(tree->nodes, tree->node_count, sizeof(char *));
    tree->nodes[at] = name;
    size_t below = WEFT_TREE_NONE;
    for (size_t t = 0; t < tree->tier_count; t++) {
        struct weft_tree_tier *tier = &tree->tiers[t];
        tier->node_group = grow(tier->node_group, tree->node_count, sizeof(size_t));
        tier->node_group[at] = WEFT_TREE_NONE;
        if (weft_str_word(&line, &word) && !weft_str_eq(word, "-")) {
            tier->node_group[at] = find_group(tier, word);
            if (below != WEFT_TREE_NONE && t > 0) {
                tree->tiers[t - 1].groups[below].parent = tier->node_group[at];
            }
        }
        below = tier->node_group[at];
    }
}

struct weft_tree *hn_tree(const char *tiers, const char *table)
{
    struct weft_tree *tree = weft_calloc(1, sizeof(*tree));
    need(tree != NULL);
    struct weft_str rest = weft_str(tiers);
    struct weft_str word;
    while (weft_str_word(&rest, &word)) {
        tree->tiers = grow(tree->tiers, tree->tier_count + 1, sizeof(tree->tiers[0]));
        tree->tiers[tree->tier_count++] = (struct weft_tree_tier){.name = word_text(word)};
    }
    rest = weft_str(table);
    while (weft_str_line(&rest, &word)) {
        add_node(tree, word);
    }
    return tree;
}

void hn_tree_guids(struct weft_tree *tree, const char *tier, const char *group, const char *guids)
{
    struct weft_tree_group *g = NULL;
    for (size_t t = 0; t < tree->tier_count; t++) {
        for (size_t i = 0; i < tree->tiers[t].group_count; i++) {
            if (strcmp(tree->tiers[t].name, tier) == 0 &&
                strcmp(tree->tiers[t].groups[i].name, group) == 0) {
                g = &tree->tiers[t].groups[i];
            }
        }
    }
    need(g != NULL);
    struct weft_str rest = weft_str(guids);
    struct weft_str word;
    while (weft_str_word(&rest, &word)) {
        g->switch_guids = grow(g->switch_guids, g->switch_guid_count + 1, sizeof(uint64_t));
        need(weft_parse_hex64(word, &g->switch_guids[g->switch_guid_count++]) == 0);
    }
    weft_free(g->identity);
    g->identity = weft_asprintf("switch:%016" PRIx64, g->switch_guids[0]);
    need(g->identity != NULL);
}

void hn_tree_free(struct weft_tree *tree)
{
    for (size_t t = 0; tree != NULL && t < tree->tier_count; t++) {
        for (size_t i = 0; i < tree->tiers[t].group_count; i++) {
            weft_free(tree->tiers[t].groups[i].name);
            weft_free(tree->tiers[t].groups[i].identity);
            weft_free(tree->tiers[t].groups[i].switch_guids);
        }
        weft_free(tree->tiers[t].groups);
        weft_free(tree->tiers[t].node_group);
        weft_free(tree->tiers[t].name);
    }
    for (size_t i = 0; tree != NULL && i < tree->node_count; i++) {
        weft_free(tree->nodes[i]);
    }
    for (size_t i = 0; tree != NULL && i < tree->unplaced_count; i++) {
        weft_free(tree->unplaced[i]);
    }
    if (tree != NULL) {
        weft_free(tree->tiers);
        weft_free(tree->nodes);
        weft_free(tree->unplaced);
        weft_free(tree);
    }
}
