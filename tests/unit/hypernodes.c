/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of HyperNodes from and to short text. */
#include "tests/unit/hypernodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "tests/unit/unit.h"

static char *text_of(struct weft_str s)
{
    return weft_strndup(s.data, s.len);
}

static int by_type_and_name(const void *a, const void *b)
{
    const struct weft_member *x = a;
    const struct weft_member *y = b;
    return x->type != y->type ? (int)x->type - (int)y->type : strcmp(x->name, y->name);
}

static void read_members(struct weft_hypernode *hn, struct weft_str rest)
{
    size_t count = 0;
    struct weft_str word;
    for (struct weft_str all = rest; weft_str_word(&all, &word);) {
        count++;
    }
    hn->members = weft_calloc(count + 1, sizeof(*hn->members));
    while (hn->members != NULL && weft_str_word(&rest, &word)) {
        hn->members[hn->member_count++] =
            (struct weft_member){.type = hn->tier == 1 ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE,
                                 .selector = WEFT_SELECTOR_EXACT,
                                 .name = text_of(word)};
    }
    qsort(hn->members, hn->member_count, sizeof(*hn->members), by_type_and_name);
}

static void read_one(struct weft_hypernode_set *set, struct weft_str line)
{
    struct weft_str name;
    struct weft_str tier;
    if (!weft_str_word(&line, &name) || !weft_str_word(&line, &tier)) {
        return;
    }
    const bool foreign = weft_str_starts(name, "!");
    if (foreign) {
        name = (struct weft_str){name.data + 1, name.len - 1};
    }
    struct weft_hypernode hn = {0};
    CHECK_INT(weft_parse_i64(tier, 0, 100, &hn.tier), 0);
    hn.name = text_of(name);
    hn.tier_name = weft_asprintf("t%" PRId64, hn.tier);
    hn.identity = weft_asprintf("id-%s", hn.name);
    hn.source = weft_strdup(foreign ? "label" : WEFT_LABEL_SOURCE_VALUE);
    hn.managed_by = weft_strdup(foreign ? "" : WEFT_LABEL_MANAGED_BY_VALUE);
    hn.instance = weft_strdup(foreign ? "" : "weft");
    hn.uid = weft_strdup("");
    hn.resource_version = weft_strdup("");
    read_members(&hn, line);
    CHECK(weft_hypernode_set_put(set, &hn) >= 0);
    weft_hypernode_done(&hn);
}

void hypernodes_read(struct weft_hypernode_set *set, const char *text)
{
    struct weft_str rest = weft_str(text);
    struct weft_str line;
    while (weft_str_line(&rest, &line)) {
        read_one(set, line);
    }
}

char *hypernodes_text(const struct weft_hypernode_set *set)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = &set->items[i];
        (void)weft_buf_printf(&buf, "%s%s %" PRId64, weft_hypernode_is_ours(hn, "weft") ? "" : "!",
                              hn->name, hn->tier);
        for (size_t m = 0; m < hn->member_count; m++) {
            (void)weft_buf_printf(&buf, " %s", hn->members[m].name);
        }
        (void)weft_buf_putc(&buf, '\n');
    }
    return weft_buf_steal(&buf);
}

void hypernodes_check(const char *file, int line, const struct weft_hypernode_set *set,
                      const char *text)
{
    weft_autofree char *actual = hypernodes_text(set);
    (void)weft_check_str(file, line, "set", actual, text);
}
