/* SPDX-License-Identifier: Apache-2.0 */
/* Which HyperNodes are adopted, and that it harms nobody. Must not write. */
#include "pkg/hypernode/adopt.h"

#include <errno.h>
#include <string.h>

#include "pkg/hypernode/model.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum weft_adopt_why weft_adopt_judge(const struct weft_hypernode *hn, const char *instance)
{
    const char *source = weft_hypernode_text(hn->source);
    const char *managed_by = weft_hypernode_text(hn->managed_by);
    if (weft_hypernode_is_ours(hn, instance)) {
        return WEFT_ADOPT_OURS;
    }
    if (strcmp(source, WEFT_LABEL_SOURCE_VALUE) == 0 ||
        strcmp(managed_by, WEFT_LABEL_MANAGED_BY_VALUE) == 0) {
        return WEFT_ADOPT_WEFT;
    }
    if (source[0] != '\0' && strcmp(source, WEFT_ADOPT_LABEL_SOURCE) != 0) {
        return WEFT_ADOPT_OTHER;
    }
    return hn->terminating ? WEFT_ADOPT_DYING : WEFT_ADOPT_TAKE;
}

void weft_adopt_plan_done(struct weft_adopt_plan *plan)
{
    weft_free(plan->items);
    *plan = (struct weft_adopt_plan){0};
}

/* What only is half taken was cut short, and is taken to its end: our source without our instance
 * is another's, so the labels come in one write. */
static int check_step(struct weft_model *model, const struct weft_hypernode *hn,
                      enum weft_model_outcome before, struct weft_error *err)
{
    const int rc = weft_model_apply(model, hn);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    const enum weft_model_outcome now = weft_model_session(model, WEFT_MODEL_JOB_TOPOLOGY);
    if (now > before) {
        return weft_err_set(err, -EPROTO, WEFT_ERR_CONFIG, "adopting %.63s must not be done: %s",
                            hn->name, weft_model_text(model));
    }
    return 0;
}

int weft_adopt_build(const struct weft_hypernode_set *set, const char *instance,
                     struct weft_adopt_plan *ret_plan, struct weft_error *err)
{
    struct weft_adopt_plan plan = {0};
    weft_auto(weft_model_free) struct weft_model *model = weft_model_new(false);
    weft_autofree struct weft_hypernode_ref *ascending = weft_hypernode_set_ascending(set);
    weft_autofree size_t *items = weft_calloc(set->count + 1, sizeof(*items));
    if (model == NULL || ascending == NULL || items == NULL || weft_model_load(model, set) < 0) {
        return weft_err_nomem(err);
    }
    const enum weft_model_outcome before = weft_model_session(model, WEFT_MODEL_JOB_TOPOLOGY);
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = ascending[i].hn;
        if (weft_adopt_judge(hn, instance) != WEFT_ADOPT_TAKE) {
            continue;
        }
        const int rc = check_step(model, hn, before, err);
        if (rc < 0) {
            return rc;
        }
        items[plan.count++] = (size_t)(hn - set->items);
    }
    plan.items = weft_steal(&items);
    *ret_plan = plan;
    return 0;
}

/* ---- Volcano's configuration ---- */

static int read_sources(const struct weft_json *list, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const struct weft_json *item = weft_json_at(list, i);
        const char *source = "";
        bool enabled = false;
        int rc = weft_json_get_string(item, "source", &source, err);
        rc = rc < 0 ? rc : weft_json_get_bool(item, "enabled", &enabled, err);
        if (rc < 0) {
            return rc;
        }
        if (enabled && strcmp(source, WEFT_ADOPT_LABEL_SOURCE) == 0) {
            return 1;
        }
    }
    return 0;
}

int weft_adopt_source_is_on(const char *text, size_t len, const char *name, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *docs = NULL;
    int rc = weft_yaml_parse_all(text, len, name, &docs, err);
    for (size_t i = 0; rc == 0 && i < weft_json_count(docs); i++) {
        const struct weft_json *list = NULL;
        rc = weft_json_get_array(weft_json_at(docs, i), "networkTopologyDiscovery", &list, err);
        rc = rc < 0 ? rc : read_sources(list, err);
    }
    return rc;
}
