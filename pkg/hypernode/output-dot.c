/* SPDX-License-Identifier: Apache-2.0 */
/* The forest as a graph for graphviz: a box a HyperNode, an edge from each to its members. */
#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/output-internal.h"
#include "pkg/hypernode/output.h"

/* In quotes a quote is escaped, and a backslash, which would be an escape sequence itself. */
static void put_quoted(struct weft_buf *buf, const char *prefix, const char *text)
{
    (void)weft_buf_printf(buf, "\"%s", prefix);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)weft_buf_putc(buf, '\\');
        }
        (void)weft_buf_putc(buf, *text);
    }
    (void)weft_buf_putc(buf, '"');
}

/* A node may be called like a HyperNode: its id says what it is. */
static const char *id_prefix(const struct weft_member *member)
{
    return member->type == WEFT_MEMBER_NODE ? "node:" : "";
}

static void put_node(struct weft_buf *buf, const char *name)
{
    (void)weft_buf_puts(buf, "    ");
    put_quoted(buf, "node:", name);
    (void)weft_buf_puts(buf, " [shape=plain, label=");
    put_quoted(buf, "", name);
    (void)weft_buf_puts(buf, "];\n");
}

static void put_edge(struct weft_buf *buf, const char *from, const struct weft_member *to)
{
    (void)weft_buf_puts(buf, "    ");
    put_quoted(buf, "", from);
    (void)weft_buf_puts(buf, " -- ");
    put_quoted(buf, id_prefix(to), to->name);
    (void)weft_buf_puts(buf, ";\n");
}

int weft_output_dot(const struct weft_output_input *input, struct weft_buf *buf)
{
    (void)weft_buf_puts(buf, "graph weft {\n    rankdir=LR;\n    node [shape=box];\n");
    for (size_t i = 0; i < input->set->count; i++) {
        const struct weft_hypernode *hn = &input->set->items[i];
        (void)weft_buf_puts(buf, "    ");
        put_quoted(buf, "", hn->name);
        (void)weft_buf_printf(buf, " [tooltip=\"tier %lld, %s\"];\n", (long long)hn->tier,
                              weft_hypernode_text(hn->tier_name));
        for (size_t m = 0; m < hn->member_count; m++) {
            if (hn->members[m].type == WEFT_MEMBER_NODE) {
                put_node(buf, hn->members[m].name);
            }
            put_edge(buf, hn->name, &hn->members[m]);
        }
    }
    (void)weft_buf_puts(buf, "}\n");
    return buf->status;
}
