/* SPDX-License-Identifier: Apache-2.0 */
/* Reading Nodes one by one. An entry's instance is NULL until it was read, "" if it had none. */
#include "controller/instances.h"

#include <errno.h>
#include <string.h>

#include "controller/view.h"
#include "pkg/base/clock.h"
#include "pkg/fabric/inventory.h"
#include "pkg/json/json.h"
#include "pkg/kube/backoff.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

enum { MAGIC = 0x77696e73 /* "wins" */ };

#define TICK_NS (WEFT_NS_PER_S / WEFT_INSTANCES_RATE)
#define RETRY_NS (5 * WEFT_NS_PER_S)
#define RETRY_MAX_NS (60 * WEFT_NS_PER_S)
#define AGAIN_MAX_NS (3600 * WEFT_NS_PER_S)

struct flight {
    struct weft_instances *owner;
    struct weft_kube_call *call; /* NULL: free */
    char *name, *uid;
};

struct weft_instances {
    unsigned magic;
    struct weft_instances_env env;
    struct weft_timer *timer; /* starts the next read */
    struct weft_timer *again; /* a new round for those without providerID */
    struct flight flights[WEFT_INSTANCES_FLIGHTS];
    size_t flying;
    size_t cursor; /* Nodes before it were read, or are being read */
    bool due;      /* there may be some that were not */
    bool rescan;   /* and also before the cursor */
    size_t round;  /* the next of the round for those without; SIZE_MAX: no round */
    bool any_empty;
    struct weft_kube_backoff failures, empties;
};

bool weft_instances_wanted(const struct weft_config *config)
{
    for (size_t i = 0; i < config->source_count; i++) {
        const struct weft_config_source *source = &config->sources[i];
        const bool names_instances =
            source->kind == WEFT_SOURCE_AWS_API || source->kind == WEFT_SOURCE_OCI_IMDS;
        if (names_instances && source->node_map == NULL) {
            return true;
        }
    }
    return false;
}

const char *weft_instances_id(const char *provider_id)
{
    const char *slash = strrchr(provider_id, '/');
    return slash != NULL ? slash + 1 : provider_id;
}

/* ---- what is next ---- */

static bool under_way(const struct weft_instances *in, const char *name)
{
    for (size_t i = 0; i < WEFT_INSTANCES_FLIGHTS; i++) {
        if (in->flights[i].call != NULL && strcmp(in->flights[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The next Node at or after *at that was not read (empty: that has none); moves *at behind it. */
static struct weft_view_node *find_next(const struct weft_instances *in, size_t *at, bool empty)
{
    while (*at < in->env.nodes->count) {
        struct weft_view_node *entry = &in->env.nodes->items[(*at)++];
        const bool wanted =
            empty ? entry->instance != NULL && entry->instance[0] == '\0' : entry->instance == NULL;
        if (wanted && !entry->gone && !under_way(in, entry->node.name)) {
            return entry;
        }
    }
    return NULL;
}

static struct weft_view_node *next_node(struct weft_instances *in)
{
    struct weft_view_node *entry = in->due ? find_next(in, &in->cursor, false) : NULL;
    if (entry == NULL && in->due && in->rescan) {
        in->rescan = false;
        in->cursor = 0;
        entry = find_next(in, &in->cursor, false);
    }
    if (entry == NULL && in->round != SIZE_MAX) {
        entry = find_next(in, &in->round, true);
        in->round = entry == NULL ? SIZE_MAX : in->round;
    }
    return entry;
}

/* Nothing more is to be read now. */
static void settle(struct weft_instances *in)
{
    if (in->flying > 0) {
        return;
    }
    const bool was_due = in->due;
    size_t at = 0;
    if (was_due && find_next(in, &at, false) != NULL) { /* moved, as others were dropped */
        in->rescan = true;
        weft_timer_start(in->timer, 0, 0);
        return;
    }
    in->due = false;
    if (in->any_empty) {
        in->any_empty = false;
        weft_timer_start(in->again, weft_kube_backoff_next(&in->empties, 0), 0);
    }
    if (was_due) {
        in->env.on_known(in->env.data, false);
    }
}

/* ---- one read ---- */

static void flight_done(struct flight *flight)
{
    weft_free(flight->name);
    weft_free(flight->uid);
    *flight = (struct flight){.owner = flight->owner};
}

/* What a Node says, or "" if it says nothing. -ENOMEM. */
static int learn(struct weft_instances *in, const struct flight *flight, const char *provider_id)
{
    struct weft_view_node *entry = weft_view_nodes_get(in->env.nodes, flight->name);
    if (entry == NULL || strcmp(entry->node.uid, flight->uid) != 0) {
        return 0; /* gone, or another one that is asked for itself */
    }
    const char *id = weft_instances_id(provider_id);
    char *copy = weft_strdup(id);
    if (copy == NULL) {
        return -ENOMEM;
    }
    const bool late = entry->instance != NULL && id[0] != '\0';
    weft_free(entry->instance);
    entry->instance = copy;
    in->any_empty = in->any_empty || id[0] == '\0';
    if (late) {
        in->env.on_known(in->env.data, true);
    }
    return 0;
}

/* Later, from the beginning: which ones were not read stands in the Nodes. */
static void pause_after(struct weft_instances *in, int64_t retry_after_ns)
{
    in->due = true;
    in->rescan = true;
    weft_timer_start(in->timer, weft_kube_backoff_next(&in->failures, retry_after_ns), 0);
}

static void on_read(void *data, const struct weft_kube_result *result)
{
    struct flight *flight = data;
    struct weft_instances *in = flight->owner;
    WEFT_CHECK(in, MAGIC);
    const struct weft_json *spec = weft_json_get(result->body, "spec");
    const char *id = weft_json_string(weft_json_get(spec, "providerID"));
    const bool failed = result->error.code != 0 && result->status != 404;
    if (failed) {
        in->env.on_error(in->env.data, flight->name, &result->error);
    }
    int rc = failed && result->error.retryable ? -EAGAIN : 0;
    rc = rc < 0 ? rc : learn(in, flight, result->error.code == 0 && id != NULL ? id : "");
    flight->call = NULL;
    flight_done(flight);
    in->flying--;
    if (rc < 0) {
        pause_after(in, result->retry_after_ns);
        return;
    }
    weft_kube_backoff_reset(&in->failures);
    weft_timer_start(in->timer, TICK_NS, 0);
}

static int fly(struct weft_instances *in, struct flight *flight, const struct weft_view_node *entry)
{
    flight->name = weft_strdup(entry->node.name);
    flight->uid = weft_strdup(entry->node.uid);
    weft_autofree char *path = weft_kube_path(&weft_kube_nodes, NULL, entry->node.name);
    if (flight->name == NULL || flight->uid == NULL || path == NULL) {
        return -ENOMEM;
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET,
                                    .path = path,
                                    .timeout_ns = 10 * WEFT_NS_PER_S,
                                    .on_done = on_read,
                                    .data = flight};
    return in->env.submit(in->env.client, &op, &flight->call, NULL);
}

static void on_tick(void *data)
{
    struct weft_instances *in = data;
    WEFT_CHECK(in, MAGIC);
    struct flight *flight = in->flights;
    while (flight < in->flights + WEFT_INSTANCES_FLIGHTS && flight->call != NULL) {
        flight++;
    }
    if (flight == in->flights + WEFT_INSTANCES_FLIGHTS) {
        return; /* an answer starts the timer again */
    }
    const struct weft_view_node *entry = next_node(in);
    if (entry == NULL) {
        settle(in);
        return;
    }
    if (fly(in, flight, entry) < 0) {
        flight_done(flight);
        pause_after(in, 0);
        return;
    }
    in->flying++;
    weft_timer_start(in->timer, TICK_NS, 0);
}

static void on_again(void *data)
{
    struct weft_instances *in = data;
    WEFT_CHECK(in, MAGIC);
    in->round = 0;
    weft_timer_start(in->timer, 0, 0);
}

/* ---- life ---- */

int weft_instances_new(struct weft_loop *loop, const struct weft_instances_env *env,
                       struct weft_instances **ret_instances, struct weft_error *err)
{
    weft_auto(weft_instances_free) struct weft_instances *in = weft_calloc(1, sizeof(*in));
    if (in == NULL) {
        return weft_err_nomem(err);
    }
    in->magic = MAGIC;
    in->env = *env;
    in->round = SIZE_MAX;
    for (size_t i = 0; i < WEFT_INSTANCES_FLIGHTS; i++) {
        in->flights[i].owner = in;
    }
    const int64_t retry = env->retry_ns > 0 ? env->retry_ns : RETRY_NS;
    weft_kube_backoff_init(&in->failures, retry, RETRY_MAX_NS, 0);
    weft_kube_backoff_init(&in->empties, 10 * retry, AGAIN_MAX_NS, 0);
    int rc = weft_timer_new(loop, on_tick, in, &in->timer, err);
    rc = rc < 0 ? rc : weft_timer_new(loop, on_again, in, &in->again, err);
    if (rc == 0) {
        *ret_instances = weft_steal(&in);
    }
    return rc;
}

void weft_instances_free(struct weft_instances *in)
{
    if (in == NULL) {
        return;
    }
    WEFT_CHECK(in, MAGIC);
    for (size_t i = 0; i < WEFT_INSTANCES_FLIGHTS; i++) {
        if (in->flights[i].call != NULL) {
            in->env.cancel(in->flights[i].call);
        }
        flight_done(&in->flights[i]);
    }
    weft_timer_free(in->timer);
    weft_timer_free(in->again);
    in->magic = 0;
    weft_free(in);
}

void weft_instances_look(struct weft_instances *in)
{
    WEFT_CHECK(in, MAGIC);
    const bool idle = !in->due;
    in->due = true;
    in->rescan = true;
    weft_kube_backoff_reset(&in->empties); /* a new Node gets its providerID soon */
    if (idle) {
        weft_timer_start(in->timer, 0, 0);
    }
}

bool weft_instances_known(const struct weft_instances *in)
{
    return !in->due;
}

int weft_instances_inventory(const struct weft_view_nodes *nodes,
                             struct weft_nic_inventory **ret_inventory)
{
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory =
        weft_nic_inventory_new();
    int rc = inventory != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < nodes->count; i++) {
        const struct weft_view_node *entry = &nodes->items[i];
        if (!entry->gone && entry->instance != NULL && entry->instance[0] != '\0') {
            rc = weft_nic_inventory_add_name(inventory, entry->instance, entry->node.name);
        }
    }
    if (rc == 0) {
        *ret_inventory = weft_steal(&inventory);
    }
    return rc;
}
