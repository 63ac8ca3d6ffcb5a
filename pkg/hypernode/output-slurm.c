/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's topology.conf and topology.yaml (topology/tree): each HyperNode is a switch, those of
 * tier 1 with nodes, the others with switches, as Slurm wants every switch to have one of both. */
#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/output-internal.h"
#include "pkg/hypernode/output.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { HOSTLIST_MAX = 8 << 20, DOCUMENT_MAX = 256 << 20 };

int weft_output_hostlist(const struct weft_hypernode *hn, struct weft_buf *buf)
{
    weft_autofree const char **names = weft_calloc(hn->member_count, sizeof(*names));
    if (names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < hn->member_count; i++) {
        names[i] = hn->members[i].name;
    }
    return weft_hostlist_format(names, hn->member_count, ",", SIZE_MAX, buf);
}

/* The record, with "\" behind a comma where a line gets too long: Slurm joins the next line without
 * a blank (parse_config.c). */
static void put_wrapped(struct weft_buf *buf, const char *text)
{
    size_t left = strlen(text);
    while (left > WEFT_OUTPUT_SLURM_LINE_MAX) {
        const char *comma = memrchr(text, ',', WEFT_OUTPUT_SLURM_LINE_MAX - 1);
        if (comma == NULL) {
            break; /* no list: names are far shorter than a line */
        }
        const size_t len = (size_t)(comma - text) + 1;
        (void)weft_buf_append(buf, text, len);
        (void)weft_buf_puts(buf, "\\\n");
        text += len;
        left -= len;
    }
    (void)weft_buf_puts(buf, text);
    (void)weft_buf_putc(buf, '\n');
}

static const char *key_of(const struct weft_hypernode *hn, const char *nodes, const char *switches)
{
    return hn->member_count > 0 && hn->members[0].type == WEFT_MEMBER_NODE ? nodes : switches;
}

static void put_tiers(const struct weft_output_input *input, struct weft_buf *buf)
{
    for (size_t t = 0; t < input->tier_count; t++) {
        (void)weft_buf_printf(buf, "%s%s", t > 0 ? ", " : "", input->tiers[t]);
    }
}

int weft_output_slurm_conf(const struct weft_output_input *input, struct weft_buf *buf)
{
    weft_autofree struct weft_hypernode_ref *order = weft_hypernode_set_ascending(input->set);
    weft_auto(weft_buf_done) struct weft_buf record = {0};
    weft_buf_init(&record, HOSTLIST_MAX);
    if (order == NULL) {
        return -ENOMEM;
    }
    (void)weft_buf_puts(buf, "# written by weft; a switch is a HyperNode; tiers, closest first: ");
    put_tiers(input, buf);
    (void)weft_buf_putc(buf, '\n');
    for (size_t i = 0; i < input->set->count; i++) {
        const struct weft_hypernode *hn = order[i].hn;
        weft_buf_reset(&record);
        (void)weft_buf_printf(&record, "SwitchName=%s %s=", hn->name,
                              key_of(hn, "Nodes", "Switches"));
        const int rc = weft_output_hostlist(hn, &record);
        if (rc < 0) {
            return rc;
        }
        put_wrapped(buf, weft_buf_text(&record));
    }
    return buf->status;
}

static int put_switches(const struct weft_output_input *input, struct weft_json_writer *w)
{
    weft_autofree struct weft_hypernode_ref *order = weft_hypernode_set_ascending(input->set);
    weft_auto(weft_buf_done) struct weft_buf list = {0};
    weft_buf_init(&list, HOSTLIST_MAX);
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = input->set->count; i-- > 0;) { /* roots first, as people read trees */
        const struct weft_hypernode *hn = order[i].hn;
        weft_buf_reset(&list);
        const int rc = weft_output_hostlist(hn, &list);
        if (rc < 0) {
            return rc;
        }
        weft_json_open(w, '{');
        weft_json_kv_string(w, "switch", hn->name);
        weft_json_kv_string(w, key_of(hn, "nodes", "children"), weft_buf_text(&list));
        weft_json_close(w, '}');
    }
    return 0;
}

int weft_output_slurm_yaml(const struct weft_output_input *input, struct weft_buf *buf)
{
    weft_auto(weft_buf_done) struct weft_buf text = {0};
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    struct weft_json_writer w;
    weft_buf_init(&text, DOCUMENT_MAX);
    weft_json_writer_init(&w, &text, 0);
    weft_json_open(&w, '[');
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "topology", "weft");
    weft_json_kv_bool(&w, "cluster_default", true);
    weft_json_put_key(&w, "tree");
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "switches");
    weft_json_open(&w, '[');
    int rc = put_switches(input, &w);
    weft_json_close(&w, ']');
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_json_close(&w, ']');
    rc = rc == 0 ? text.status : rc;
    rc = rc == 0 ? weft_json_parse(weft_buf_text(&text), text.len, "slurm", &root, NULL) : rc;
    if (rc == 0) {
        weft_yaml_write(root, buf);
    }
    return rc < 0 ? rc : buf->status;
}
