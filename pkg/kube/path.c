/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and query strings of the API, percent-encoded. */
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/kube/client.h"
#include "pkg/kube/path.h"

enum { PATH_MAX_BYTES = 4096 };

const struct weft_kube_resource weft_kube_nodes = {"", "v1", "nodes"};
const struct weft_kube_resource weft_kube_pods = {"", "v1", "pods"};
const struct weft_kube_resource weft_kube_hypernodes = {"topology.volcano.sh", "v1alpha1",
                                                        "hypernodes"};
const struct weft_kube_resource weft_kube_leases = {"coordination.k8s.io", "v1", "leases"};
const struct weft_kube_resource weft_kube_events = {"events.k8s.io", "v1", "events"};

/* RFC 3986, section 2.3. */
static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

void weft_kube_put_encoded(struct weft_buf *buf, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (is_unreserved(*p)) {
            (void)weft_buf_putc(buf, *p);
        } else {
            (void)weft_buf_printf(buf, "%%%02X", (unsigned)(unsigned char)*p);
        }
    }
}

void weft_kube_put_param(struct weft_buf *query, const char *name, const char *value)
{
    if (query->len > 0) {
        (void)weft_buf_putc(query, '&');
    }
    (void)weft_buf_puts(query, name);
    (void)weft_buf_putc(query, '=');
    weft_kube_put_encoded(query, value);
}

static void put_part(struct weft_buf *buf, const char *part)
{
    (void)weft_buf_putc(buf, '/');
    weft_kube_put_encoded(buf, part);
}

char *weft_kube_path(const struct weft_kube_resource *resource, const char *ns, const char *name)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, PATH_MAX_BYTES);
    if (resource->group[0] == '\0') {
        put_part(&buf, "api");
    } else {
        put_part(&buf, "apis");
        put_part(&buf, resource->group);
    }
    put_part(&buf, resource->version);
    if (ns != NULL) {
        put_part(&buf, "namespaces");
        put_part(&buf, ns);
    }
    put_part(&buf, resource->plural);
    if (name != NULL) {
        put_part(&buf, name);
    }
    return weft_buf_steal(&buf);
}
