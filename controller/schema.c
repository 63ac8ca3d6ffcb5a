/* SPDX-License-Identifier: Apache-2.0 */
/* Does the server keep spec.tierName? Volcano's CRD before 1.14 drops it. That is seen on our own
 * objects; that a newer CRD has come since then is only told by the server's schema, which is read
 * while our objects lack the field. Reads only. */
#include <string.h>

#include "controller/controller-internal.h"
#include "pkg/base/log.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"

/* polls (10 s each) between two reads of the schema */
enum { POLLS = 60 };

static const struct weft_json *property(const struct weft_json *schema, const char *name)
{
    return weft_json_get(weft_json_get(schema, "properties"), name);
}

/* true if any schema of the document is a HyperNode's that has spec.tierName. */
static bool knows_tier_name(const struct weft_json *doc)
{
    const struct weft_json *schemas = weft_json_get(weft_json_get(doc, "components"), "schemas");
    for (size_t i = 0; i < weft_json_count(schemas); i++) {
        const struct weft_json *schema = weft_json_at(schemas, i);
        const char *name = weft_json_key(schema);
        const size_t len = name != NULL ? strlen(name) : 0;
        static const char kind[] = ".HyperNode";
        if (len < sizeof(kind) - 1 || strcmp(name + len - (sizeof(kind) - 1), kind) != 0) {
            continue;
        }
        if (property(property(schema, "spec"), "tierName") != NULL) {
            return true;
        }
    }
    return false;
}

static void on_schema(void *data, const struct weft_kube_result *result)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->schema_call = NULL;
    /* no answer, or no right to read it: what is seen on the objects goes on to count */
    const bool knows = result->error.code == 0 && knows_tier_name(result->body);
    if (knows && !c->tier_name_served) {
        weft_log(WEFT_LOG_INFO, "the server knows spec.tierName");
        c->tier_name_served = true;
        weft_controller_changed(c, false);
    }
}

static bool ours_lack_tier_name(const struct weft_controller *c)
{
    bool any = false;
    for (size_t i = 0; i < c->hypernodes.set.count; i++) {
        const struct weft_hypernode *hn = &c->hypernodes.set.items[i];
        if (!weft_hypernode_is_ours(hn, c->ours.instance)) {
            continue;
        }
        if (hn->tier_name[0] != '\0') {
            return false;
        }
        any = true;
    }
    return any;
}

bool weft_controller_prunes_tier_name(const struct weft_controller *c)
{
    return !c->tier_name_served && ours_lack_tier_name(c);
}

void weft_controller_probe_schema(struct weft_controller *c, bool now)
{
    const bool due = now || c->schema_polls++ % POLLS == 0;
    if (!due || c->schema_call != NULL || c->stopping || !c->hypernodes_synced ||
        !weft_controller_prunes_tier_name(c)) {
        return;
    }
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET,
        .path = "/openapi/v3/apis/topology.volcano.sh/v1alpha1",
        .on_done = on_schema,
        .data = c,
    };
    (void)!weft_kube_submit(c->client, &op, &c->schema_call, NULL);
}
