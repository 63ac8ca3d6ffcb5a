/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of lint: what it says of a set that breaks it, and that it is silent otherwise. */
#include "pkg/hypernode/lint.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

/* "severity kind object\n" a finding. */
static char *lint(const struct weft_hypernode_set *set)
{
    weft_auto(weft_lint_done) struct weft_lint found = {0};
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 20);
    (void)weft_buf_puts(&buf, "");
    CHECK_INT(weft_lint_run(set, &found, NULL), 0);
    for (size_t i = 0; i < found.count; i++) {
        (void)weft_buf_printf(&buf, "%s %s %s\n",
                              weft_lint_severity_name(found.findings[i].severity),
                              found.findings[i].kind, found.findings[i].object);
        CHECK(found.findings[i].text[0] != '\0');
    }
    return weft_buf_steal(&buf);
}

static void expect(const struct weft_hypernode_set *set, const char *findings)
{
    weft_autofree char *got = lint(set);
    CHECK_STR(got, findings);
}

#define EMPTY(name) weft_auto(weft_hypernode_set_done) struct weft_hypernode_set name = {0}

static void put_good(struct weft_hypernode_set *set)
{
    hn_put(set, "a", 1, "n:n1 n:n2");
    hn_put(set, "b", 1, "n:n3");
    hn_put(set, "x", 2, "h:a h:b");
}

static void good(void)
{
    EMPTY(none);
    expect(&none, "");
    EMPTY(set);
    put_good(&set);
    expect(&set, "");
    hn_put_foreign(&set, "far", 1, "n:m1"); /* another root is fine */
    expect(&set, "");
}

static void parents(void)
{
    EMPTY(set);
    put_good(&set);
    hn_put(&set, "y", 2, "h:b");
    expect(&set, "error two-parents b\n");
    EMPTY(three);
    put_good(&three);
    hn_put(&three, "y", 2, "h:b");
    hn_put(&three, "z", 2, "h:b");
    expect(&three, "error two-parents b\nerror two-parents b\n");
}

static void cycles(void)
{
    EMPTY(set);
    hn_put(&set, "a", 1, "h:c n:n1");
    hn_put(&set, "b", 2, "h:a");
    hn_put(&set, "c", 3, "h:b");
    expect(&set, "error cycle a\nwarning tier-order a\n");
    EMPTY(self);
    hn_put(&self, "a", 1, "h:a n:n1");
    expect(&self, "error cycle a\nwarning tier-order a\n");
    EMPTY(tail); /* what hangs under a cycle is no cycle of its own */
    hn_put(&tail, "p", 1, "n:n1");
    hn_put(&tail, "q", 2, "h:p h:r");
    hn_put(&tail, "r", 3, "h:q");
    expect(&tail, "error cycle q\nwarning tier-order q\n");
}

static void children(void)
{
    EMPTY(set);
    put_good(&set);
    hn_put(&set, "y", 2, "h:gone n:n3");
    expect(&set, "error missing-child y\n");
    EMPTY(order);
    hn_put(&order, "a", 2, "n:n1");
    hn_put(&order, "b", 1, "n:n2");
    hn_put(&order, "x", 2, "h:a h:b");
    expect(&order, "warning mixed-depth a\nwarning tier-order x\n");
}

static void members(void)
{
    EMPTY(set);
    hn_put(&set, "a", 1, "n:n1 re:^n label:");
    hn_put(&set, "b", 1, "none: n:n2");
    hn_put(&set, "x", 2, "hre:^a h:a h:b");
    hn_put(&set, "c", 1, "");
    expect(&set, "error empty c\nerror selector b\nwarning hypernode-selector x\n"
                 "warning selector a\nnote selector a\nnote selector x\n");
}

static void patterns(void)
{
    EMPTY(good);
    hn_put(&good, "a", 1, "re:^(n|m)[0-9]{2}$");
    expect(&good, "note selector a\n");
    EMPTY(set);
    hn_put(&set, "a", 1, "re:(n");
    hn_put(&set, "b", 1, "re:n[0-9");
    hn_put(&set, "c", 1, "re:n1}");
    hn_put(&set, "d", 1, "re:n\\("); /* means a bracket, and is refused all the same */
    hn_put(&set, "e", 1, "re:");
    hn_put(&set, "f", 1, "re:)n(]");
    expect(&set, "error bad-pattern a\nerror bad-pattern b\nerror bad-pattern c\n"
                 "error bad-pattern d\nerror bad-pattern e\nerror bad-pattern f\n"
                 "note selector a\nnote selector b\nnote selector c\nnote selector d\n"
                 "note selector e\nnote selector f\n");
}

static void names(void)
{
    EMPTY(set);
    hn_put(&set, "a", 1,
           "n:n1 n:UPPER "
           "n:a-node-with-a-name-of-exactly-sixty-four-characters-0123456789ab");
    hn_put(&set, "a-hypernode-with-a-name-of-exactly-sixty-three-characters-01234", 1, "n:n2");
    hn_put(&set, "a-hypernode-with-a-name-of-exactly-sixty-four-characters-0123456", 1, "n:n3");
    expect(&set, "error bad-name a\n"
                 "warning long-name a\n"
                 "warning long-name "
                 "a-hypernode-with-a-name-of-exactly-sixty-four-characters-0123456\n");
}

static void nodes(void)
{
    EMPTY(set);
    put_good(&set);
    hn_put(&set, "c", 1, "n:n1 n:n9");
    expect(&set, "warning node-twice n1\n");
    EMPTY(deep);
    put_good(&deep);
    hn_put(&deep, "y", 2, "n:n7 n:n8 n:n1"); /* n1 has its tier 1 */
    expect(&deep, "warning mixed-depth y\n");
}

static void tiers(void)
{
    EMPTY(set);
    hn_put(&set, "a", 0, "n:n1");
    expect(&set, "warning tier-zero a\n");
    EMPTY(gap);
    hn_put(&gap, "a", 2, "n:n1");
    hn_put(&gap, "x", 5, "h:a");
    expect(&gap, "note tier-gap 2\nnote tier-gap 5\n");
    EMPTY(clash);
    put_good(&clash);
    CHECK_INT(weft_hypernode_set_text(&clash.items[2].tier_name, "tier1"), 0);
    expect(&clash, "warning tier-name-clash tier1\n");
    EMPTY(nameless);
    put_good(&nameless);
    CHECK_INT(weft_hypernode_set_text(&nameless.items[0].tier_name, ""), 0);
    nameless.items[1].terminating = true;
    expect(&nameless, "note no-tier-name a\nnote terminating b\n");
}

static void too_large(void)
{
    EMPTY(set);
    struct weft_hypernode hn = hn_make("a", 1, "");
    char name[64];
    for (int i = 0; i < 12000; i++) {
        (void)snprintf(name, sizeof(name), "a-node-with-a-rather-long-name-%05d", i);
        CHECK_INT(weft_hypernode_add_member(&hn, WEFT_MEMBER_NODE, WEFT_SELECTOR_EXACT, name), 0);
    }
    weft_hypernode_sort(&hn);
    CHECK_INT(weft_hypernode_set_put(&set, &hn), 0);
    expect(&set, ""); /* 12,000 × (64 + 36) bytes = 1.2 MB: just fits */
    struct weft_hypernode more = hn_make("b", 1, "");
    for (int i = 0; i < 12001; i++) {
        (void)snprintf(name, sizeof(name), "b-node-with-a-rather-long-name-%05d", i);
        CHECK_INT(weft_hypernode_add_member(&more, WEFT_MEMBER_NODE, WEFT_SELECTOR_EXACT, name), 0);
    }
    weft_hypernode_sort(&more);
    CHECK_INT(weft_hypernode_set_put(&set, &more), 0);
    expect(&set, "error too-large b\n");
}

static void torture(void)
{
    EMPTY(set);
    put_good(&set);
    hn_put(&set, "y", 2, "h:b n:n1 n:n8");
    hn_put(&set, "z", 3, "h:z n:n8");
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 1000; n++) {
        weft_auto(weft_lint_done) struct weft_lint found = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_lint_run(&set, &found, NULL);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 10);
}

WEFT_SUITE(hypernode_lint, {"good", good}, {"parents", parents}, {"cycles", cycles},
           {"children", children}, {"members", members}, {"patterns", patterns}, {"names", names},
           {"nodes", nodes}, {"tiers", tiers}, {"too large", too_large}, {"torture", torture})
