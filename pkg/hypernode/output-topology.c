/* SPDX-License-Identifier: Apache-2.0 */
/* The Topology objects of Kueue and KAI: which node labels are the levels, farthest first, the host
 * name last. They name the same labels that the controller writes, so they agree with the
 * HyperNodes. */
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/output-internal.h"
#include "pkg/hypernode/output.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { OBJECT_MAX = 1 << 16 };

static void put_level(struct weft_json_writer *w, const char *label)
{
    weft_json_open(w, '{');
    weft_json_kv_string(w, "nodeLabel", label);
    weft_json_close(w, '}');
}

static int put_object(const char *api_version, const struct weft_output_input *input,
                      struct weft_buf *text)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, text, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", api_version);
    weft_json_kv_string(&w, "kind", "Topology");
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "name", input->instance);
    weft_json_put_key(&w, "labels");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, WEFT_LABEL_MANAGED_BY, WEFT_LABEL_MANAGED_BY_VALUE);
    weft_json_kv_string(&w, WEFT_LABEL_INSTANCE, input->instance);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_json_put_key(&w, "spec");
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "levels");
    weft_json_open(&w, '[');
    for (size_t t = input->tier_count; t > 0; t--) {
        char label[320]; /* a label key has at most 253 + 1 + 63 characters */
        (void)snprintf(label, sizeof(label), "%stier-%zu", input->prefix, t);
        put_level(&w, label);
    }
    put_level(&w, "kubernetes.io/hostname");
    weft_json_close(&w, ']');
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    return text->status;
}

int weft_output_topology(const char *api_version, const struct weft_output_input *input,
                         struct weft_buf *buf)
{
    weft_auto(weft_buf_done) struct weft_buf text = {0};
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_buf_init(&text, OBJECT_MAX);
    int rc = put_object(api_version, input, &text);
    rc = rc == 0 ? weft_json_parse(weft_buf_text(&text), text.len, "topology", &root, NULL) : rc;
    if (rc == 0) {
        (void)weft_buf_puts(buf, "---\n");
        weft_yaml_write(root, buf);
    }
    return rc < 0 ? rc : buf->status;
}
