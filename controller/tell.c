/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers what is known for the status, and has it written by the leader once HyperNodes are. Must
 * not hold anything up. */
#include <stdio.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "controller/forest.h"
#include "controller/options.h"
#include "controller/status.h"
#include "controller/volcano-config.h"
#include "controller/volcano.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/tree/tree.h"

/* From a reason to the look at whether HyperNodes are being written, and between two looks. */
#define SOON_NS (20 * WEFT_NS_PER_MS)
#define BUSY_NS (200 * WEFT_NS_PER_MS)
/* Volcano's configuration is looked at every fifth time that a missing CRD would be. */
enum { VOLCANO_PERIOD = 5, NAME_MAX_BYTES = 80 };

/* ---- what is known ---- */

/* "unplaced" says that a Node is in no HyperNode: not so where it keeps its last place. */
static bool is_over(const void *data, const struct weft_finding *finding)
{
    const struct weft_controller *c = data;
    return strcmp(finding->kind, "unplaced") == 0 &&
           weft_forest_home(c->decision.places, finding->subject) != WEFT_FOREST_NONE;
}

void weft_controller_findings(const struct weft_controller *c, struct weft_finding_lists *ret)
{
    const struct weft_decision *d = &c->decision;
    *ret = (struct weft_finding_lists){.is_over = is_over, .data = c};
    if (d->tree != NULL) {
        ret->lists[0] = (struct weft_finding_list){d->tree->findings, d->tree->finding_count};
        ret->lists[1] = (struct weft_finding_list){d->layout.findings, d->layout.finding_count};
        ret->lists[2] = (struct weft_finding_list){d->plan.findings, d->plan.finding_count};
        ret->lists[3] = (struct weft_finding_list){c->tell.beside.items, c->tell.beside.count};
    }
    if (c->tell.volcano != NULL) {
        const struct weft_findings *found = weft_volcano_findings(c->tell.volcano);
        ret->lists[4] = (struct weft_finding_list){found->items, found->count};
    }
}

/* An error's text may name a time or a port: it counts as another only if its kind is. */
static const char *steady_error(struct weft_controller *c, size_t source,
                                const struct weft_source_health *health)
{
    struct weft_error *told = &c->tell.source_errors[source];
    const struct weft_error *now = &health->error;
    if (told->code != now->code || told->domain != now->domain ||
        told->domain_code != now->domain_code) {
        *told = *now;
    }
    return told->code != 0 ? told->message : "";
}

static void gather_sources(struct weft_controller *c, struct weft_status_facts *f)
{
    const struct weft_tree *tree = c->decision.tree;
    f->source_count = c->config->source_count;
    for (size_t i = 0; i < f->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(c->sources, i);
        f->sources[i].name = c->config->sources[i].name;
        f->sources[i].state =
            weft_source_state_name(health != NULL ? health->state : WEFT_SOURCE_WAITING);
        f->sources[i].error = health != NULL ? steady_error(c, i, health) : "";
    }
    for (size_t i = 0; tree != NULL && i < tree->node_count; i++) {
        const size_t source = tree->node_source != NULL ? tree->node_source[i] : 0;
        if (source < f->source_count) {
            f->sources[source].placed++;
        }
    }
}

static void gather_hypernodes(const struct weft_controller *c, struct weft_status_facts *f)
{
    const struct weft_hypernode_set *wanted = &c->decision.keep.set;
    const struct weft_hypernode_set *live = &c->hypernodes.set;
    for (size_t i = 0; i < wanted->count; i++) {
        const int64_t tier = wanted->items[i].tier;
        if (tier >= 1 && tier <= WEFT_LAYOUT_TIERS_MAX) {
            f->hypernodes[tier - 1]++;
        }
    }
    for (size_t i = 0; i < live->count; i++) {
        f->foreign += !weft_hypernode_is_ours(&live->items[i], c->ours.instance);
    }
}

void weft_controller_facts(struct weft_controller *c, struct weft_status_facts *ret)
{
    const struct weft_tree *tree = c->decision.tree;
    *ret = (struct weft_status_facts){
        .instance = c->ours.instance,
        .paused = c->config->paused,
        .served = !c->crd_missing,
        .config_error = c->config_error,
        .pass_error = c->tell.pass_error,
        .decided = tree != NULL,
        .tiers = &c->config->tiers,
    };
    if (tree != NULL) {
        ret->nodes.selected = c->decision.selected;
        ret->nodes.placed = tree->node_count;
        ret->nodes.unplaced = tree->unplaced_count;
        ret->nodes.excluded = c->decision.excluded;
        ret->nodes.kept = c->decision.keep.kept;
        ret->refusals = &c->decision.keep.refusals;
    }
    gather_sources(c, ret);
    gather_hypernodes(c, ret);
    weft_controller_findings(c, &ret->findings);
}

/* ---- having it written ---- */

static void write_now(struct weft_controller *c)
{
    struct weft_error err = {0};
    struct weft_status_facts facts;
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, WEFT_STATUS_TEXT_MAX);
    weft_controller_facts(c, &facts);
    weft_status_text(&facts, &text);
    if (text.status < 0 ||
        weft_status_set(c->tell.status, weft_buf_text(&text), text.len, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "status not written", WEFT_KV_S("error", "out of memory"));
    }
}

static void on_tell(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (c->apply != NULL) { /* HyperNodes first */
        weft_timer_start(c->tell.timer, BUSY_NS, 0);
    } else if (c->leading && !c->stopping) {
        write_now(c);
    }
}

void weft_controller_tell(struct weft_controller *c)
{
    if (c->tell.status != NULL && c->leading && c->tell.thought &&
        !weft_timer_active(c->tell.timer)) {
        weft_timer_start(c->tell.timer, SOON_NS, 0);
    }
}

void weft_controller_thought(struct weft_controller *c, const char *error)
{
    (void)snprintf(c->tell.pass_error, sizeof(c->tell.pass_error), "%s", error);
    c->tell.thought = true;
    weft_controller_tell(c);
}

void weft_controller_look_beside(struct weft_controller *c)
{
    if (c->tell.volcano != NULL && c->leading && !c->options->once) {
        weft_volcano_start(c->tell.volcano);
    }
}

void weft_controller_tell_lead(struct weft_controller *c, bool leading)
{
    c->tell.thought = false;
    if (c->tell.status == NULL) {
        return;
    }
    weft_timer_stop(c->tell.timer);
    weft_status_forget(c->tell.status);
    weft_volcano_stop(c->tell.volcano);
    if (leading) {
        weft_controller_look_beside(c);
    }
}

bool weft_controller_telling(const struct weft_controller *c)
{
    return c->tell.status != NULL && weft_status_busy(c->tell.status);
}

void weft_controller_end_once(struct weft_controller *c, int exit_status)
{
    if (c->tell.status != NULL && !c->stopping) {
        write_now(c);
        if (weft_status_busy(c->tell.status)) {
            c->tell.ending = true;
            c->exit_status = exit_status;
            return;
        }
    }
    weft_controller_stop(c, exit_status);
}

static void on_idle(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (c->stopping) {
        weft_controller_settled(c);
    } else if (c->tell.ending) {
        c->tell.ending = false;
        weft_controller_stop(c, c->exit_status);
    }
}

static bool may_write(void *data)
{
    return weft_controller_may_write(data);
}

static void on_volcano(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (c->tell.thought) { /* else the pass says them */
        weft_controller_say_findings(c);
        weft_controller_tell(c);
    }
}

int weft_controller_tell_init(struct weft_controller *c, struct weft_error *err)
{
    if (weft_controller_reads_only(c)) {
        return 0;
    }
    char name[NAME_MAX_BYTES];
    (void)snprintf(name, sizeof(name), "%s-status", c->ours.instance);
    const struct weft_status_env env = {
        .submit = weft_kube_submit,
        .cancel = weft_kube_call_cancel,
        .client = c->client,
        .may_write = may_write,
        .on_idle = on_idle,
        .data = c,
        .ns = c->options->ns,
        .name = name,
        .instance = c->ours.instance,
    };
    const struct weft_volcano_options volcano = {
        .submit = weft_kube_submit,
        .cancel = weft_kube_call_cancel,
        .client = c->client,
        .ns = c->options->volcano_ns,
        .release = c->options->volcano_release,
        .period_ns = VOLCANO_PERIOD * c->options->crd_retry_ns,
        .changed = on_volcano,
        .data = c,
    };
    int rc = weft_timer_new(c->loop, on_tell, c, &c->tell.timer, err);
    if (rc == 0) {
        rc = weft_volcano_new(c->loop, &volcano, &c->tell.volcano, err);
    }
    return rc < 0 ? rc : weft_status_new(c->loop, &env, &c->tell.status, err);
}

void weft_controller_tell_done(struct weft_controller *c)
{
    weft_timer_free(c->tell.timer);
    weft_volcano_free(c->tell.volcano);
    weft_status_free(c->tell.status);
    weft_findings_done(&c->tell.beside);
}
