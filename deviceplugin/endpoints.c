/* SPDX-License-Identifier: Apache-2.0 */
/* From a machine to resources that the kubelet knows. */
#include "deviceplugin/endpoints.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/link.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/service.h"
#include "deviceplugin/stats.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"

#define AGAIN_NS WEFT_NS_PER_S

enum { ENDPOINTS_MAGIC = 0x456e6473, /* "Ends" */ ENDPOINT_MAGIC = 0x456e6470 /* "Endp" */ };

struct endpoint {
    uint32_t magic;
    char *resource;
    struct weft_service *service;
    struct weft_link *link; /* NULL: there was nothing to register yet */
    bool wanted;            /* the machine in use has devices for it */
};

struct weft_endpoints {
    uint32_t magic;
    struct weft_endpoints_options options;
    struct weft_machine *machine; /* in use; NULL before the first */
    struct weft_machine *due;     /* one that there was no memory for; NULL: none */
    struct weft_timer *again;     /* for it, or for what of machine is not in use yet */
    bool stopped;
    char left_out[WEFT_ERROR_MESSAGE_MAX]; /* why devices are not advertised, the first reason */
    struct endpoint *items[WEFT_POOLS_MAX];
    size_t count;
};

/* ---- one resource ---- */

static void on_streams_changed(void *data)
{
    const struct endpoint *endpoint = data;
    WEFT_CHECK(endpoint, ENDPOINT_MAGIC);
    if (endpoint->link != NULL) {
        weft_link_streams_changed(endpoint->link);
    }
}

static void on_told(void *data, bool registered, const char *error)
{
    const struct endpoint *endpoint = data;
    WEFT_CHECK(endpoint, ENDPOINT_MAGIC);
    if (endpoint->link != NULL) {
        weft_link_told(endpoint->link, registered, error);
    }
}

static void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint != NULL) {
        weft_link_free(endpoint->link);
        weft_service_free(endpoint->service);
        weft_free(endpoint->resource);
        endpoint->magic = 0;
        weft_free(endpoint);
    }
}

static int add_endpoint(struct weft_endpoints *e, const char *resource,
                        struct endpoint **ret_endpoint, struct weft_error *err)
{
    if (e->count == WEFT_POOLS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "more than %d resources in turn: restart",
                            (int)WEFT_POOLS_MAX);
    }
    struct endpoint *endpoint = weft_calloc(1, sizeof(*endpoint));
    if (endpoint == NULL) {
        return weft_err_nomem(err);
    }
    endpoint->magic = ENDPOINT_MAGIC;
    endpoint->resource = weft_strdup(resource);
    int rc = endpoint->resource == NULL ? weft_err_nomem(err) : 0;
    const char *watched = e->options.registry != NULL ? endpoint->resource : NULL;
    if (rc == 0) {
        rc = weft_service_new(&(struct weft_service_options){.loop = e->options.loop,
                                                             .rpc = e->options.rpc,
                                                             .policy = e->options.policy,
                                                             .sharing = e->options.pools->sharing,
                                                             .stats = e->options.stats,
                                                             .streams_changed = on_streams_changed,
                                                             .watched_resource = watched,
                                                             .told = on_told,
                                                             .data = endpoint},
                              &endpoint->service, err);
    }
    if (rc < 0) {
        endpoint_free(endpoint);
        return rc;
    }
    e->items[e->count++] = endpoint;
    *ret_endpoint = endpoint;
    return 0;
}

static struct endpoint *find(const struct weft_endpoints *e, const char *resource)
{
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->items[i]->resource, resource) == 0) {
            return e->items[i];
        }
    }
    return NULL;
}

/* ---- what is told ---- */

static bool warned(const struct weft_machine *before, const char *warning)
{
    for (size_t i = 0; before != NULL && i < before->warning_count; i++) {
        if (strcmp(before->warnings[i], warning) == 0) {
            return true;
        }
    }
    return false;
}

/* What the source is newly not sure of, and what a machine cannot do. */
static void note_warnings(const struct weft_endpoints *e, const struct weft_machine *machine)
{
    for (size_t i = 0; i < machine->warning_count; i++) {
        if (!warned(e->machine, machine->warnings[i])) {
            weft_log(WEFT_LOG_WARN, "machine-warning", WEFT_KV_S("detail", machine->warnings[i]));
        }
    }
    if (!weft_grant_possible(machine)) {
        weft_log(WEFT_LOG_WARN, "machine-incomplete", WEFT_KV_S("machine", machine->name),
                 WEFT_KV_S("reason", "no device nodes, and ids that are no UUIDs"),
                 WEFT_KV_S("effect", "pods get no GPU"),
                 WEFT_KV_S("do", "write the machine's JSON on the node with hack/record-machine"));
    }
}

static void note_pool(const struct weft_machine *machine, const struct weft_pool *pool)
{
    size_t healthy = 0;
    for (size_t i = 0; i < pool->device_count; i++) {
        healthy += machine->devices[pool->devices[i]].healthy ? 1 : 0;
    }
    weft_log(WEFT_LOG_INFO, "devices", WEFT_KV_S("resource", pool->resource),
             WEFT_KV_I("count", pool->device_count), WEFT_KV_I("healthy", healthy),
             WEFT_KV_I("replicas", pool->replicas));
}

/* ---- a machine ---- */

/* Registers as soon as there is something to register. */
static int register_if_due(struct weft_endpoints *e, struct endpoint *endpoint, bool due,
                           struct weft_error *err)
{
    if (endpoint->link != NULL) {
        return 0;
    }
    if (!due) {
        weft_log(WEFT_LOG_INFO, "not-registered", WEFT_KV_S("resource", endpoint->resource),
                 WEFT_KV_S("reason", "no device was found"),
                 WEFT_KV_S("effect", "looks again now and then"));
        return 0;
    }
    return weft_link_new(&(struct weft_link_options){.loop = e->options.loop,
                                                     .rpc = e->options.rpc,
                                                     .service = endpoint->service,
                                                     .folder = e->options.folder,
                                                     .registry = e->options.registry,
                                                     .resource = endpoint->resource,
                                                     .stats = e->options.stats},
                         &endpoint->link, err);
}

static int set_devices(const struct weft_endpoints *e, struct endpoint *endpoint,
                       const struct weft_machine *machine, const struct weft_pool *pool,
                       struct weft_error *err)
{
    struct weft_machine *part = NULL;
    struct weft_inventory *inventory = NULL;
    int rc = weft_machine_subset(machine, pool->devices, pool->device_count, &part, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_inventory_new(part,
                            &(struct weft_inventory_options){.replicas = pool->replicas,
                                                             .fail_above_one = pool->fail_above_one,
                                                             .respond = e->options.respond,
                                                             .extras = e->options.extras},
                            &inventory, err);
    if (rc < 0) {
        weft_machine_free(part);
        return rc;
    }
    return weft_service_set_inventory(endpoint->service, inventory, err);
}

static int use_pool(struct weft_endpoints *e, const struct weft_machine *machine,
                    const struct weft_pool *pool, bool first, struct weft_error *err)
{
    struct endpoint *endpoint = find(e, pool->resource);
    const bool due = pool->device_count > 0 || (first && e->options.always);
    int rc = 0;
    if (endpoint == NULL && (first || pool->device_count > 0)) {
        rc = add_endpoint(e, pool->resource, &endpoint, err);
    }
    if (rc < 0 || endpoint == NULL) {
        return rc;
    }
    endpoint->wanted = true;
    rc = set_devices(e, endpoint, machine, pool, err);
    if (rc < 0) {
        if (weft_service_inventory(endpoint->service) == NULL) { /* a new one: as if never made */
            e->count--;
            endpoint_free(endpoint);
        }
        return rc;
    }
    note_pool(machine, pool);
    return register_if_due(e, endpoint, due, err);
}

/* Resources of before that the machine has no device for: the kubelet learns it from an empty
 * list. One that was never registered goes: nobody knows it. */
static int empty_others(struct weft_endpoints *e, const struct weft_machine *machine,
                        struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < e->count;) {
        struct endpoint *endpoint = e->items[i];
        if (!endpoint->wanted && endpoint->link == NULL) {
            endpoint_free(endpoint);
            e->items[i] = e->items[--e->count];
            continue;
        }
        if (!endpoint->wanted) {
            struct weft_pool none = {.resource = endpoint->resource, .replicas = 1};
            const int failed = set_devices(e, endpoint, machine, &none, err);
            rc = rc < 0 ? rc : failed;
        }
        i++;
    }
    return rc;
}

/* *ret_any: some resource has the machine now. */
static int use_pools(struct weft_endpoints *e, const struct weft_machine *machine, bool *ret_any,
                     struct weft_error *err)
{
    weft_auto(weft_pools_done) struct weft_pools pools = {0};
    int rc = weft_pools_plan(machine, e->options.pools, &pools, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < pools.problem_count; i++) {
        weft_log(WEFT_LOG_WARN, "not-advertised", WEFT_KV_S("reason", pools.problems[i]));
    }
    for (size_t i = 0; i < pools.unused_count; i++) { /* one config may be for many kinds of node */
        weft_log(WEFT_LOG_INFO, "sharing-unused",
                 WEFT_KV_S("resource", e->options.pools->shares[pools.unused[i]].resource));
    }
    (void)snprintf(e->left_out, sizeof(e->left_out), "%s",
                   pools.problem_count > 0 ? pools.problems[0] : "");
    for (size_t i = 0; i < e->count; i++) {
        e->items[i]->wanted = false;
    }
    for (size_t i = 0; i < pools.count; i++) {
        /* one that fails keeps what it had; the others must not wait for it */
        struct weft_error why = {0};
        const int failed = use_pool(e, machine, &pools.items[i], i == 0, &why);
        *ret_any = *ret_any || failed == 0;
        if (failed < 0 && rc == 0) {
            rc = failed;
            if (err != NULL) {
                *err = why;
            }
        }
    }
    const int emptied = empty_others(e, machine, rc < 0 ? NULL : err);
    return rc < 0 ? rc : emptied;
}

/* Memory that lacks comes back: the kubelet must not have to wait for another change. */
static void plan_again(struct weft_endpoints *e, int rc)
{
    if (rc == -ENOMEM) {
        weft_timer_start(e->again, AGAIN_NS, 0);
    }
}

/* The machine cannot be advertised as it is now. What is advertised stays, but for what would be
 * wrong to hand out: the health of its devices is that of now, and one that is gone has none. */
static void take_health(struct weft_endpoints *e, const struct weft_machine *now)
{
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    bool any = false;
    if (e->machine == NULL || weft_machine_copy(e->machine, &machine, NULL) < 0) {
        return; /* without memory: the next look tries again */
    }
    for (size_t i = 0; i < machine->device_count; i++) {
        struct weft_device *d = &machine->devices[i];
        const size_t number = weft_machine_find_id(now, d->id);
        const struct weft_device *found = number != SIZE_MAX ? &now->devices[number] : NULL;
        d->healthy = found != NULL && found->healthy;
        d->state = found != NULL ? found->state : WEFT_DEVICE_PLAIN;
        (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s",
                       found != NULL ? found->health_reason : "it is not there any more");
    }
    (void)use_pools(e, machine, &any, NULL);
    if (any) {
        weft_machine_free(e->machine);
        e->machine = weft_steal(&machine);
    }
}

int weft_endpoints_use(struct weft_endpoints *endpoints, struct weft_machine *machine,
                       struct weft_error *err)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    if (endpoints->stopped) {
        weft_machine_free(machine);
        return 0;
    }
    weft_machine_free(weft_steal(&endpoints->due)); /* this one is newer */
    note_warnings(endpoints, machine);
    bool any = false;
    const int rc = use_pools(endpoints, machine, &any, err);
    plan_again(endpoints, rc);
    if (!any && rc == -ENOMEM) {
        endpoints->due = machine;
    } else if (!any) { /* no resource has it: what is shown stays what is advertised */
        take_health(endpoints, machine);
        weft_machine_free(machine);
    } else {
        weft_machine_free(endpoints->machine);
        endpoints->machine = machine;
    }
    return rc;
}

/* The machine in use once more, or the one that could not be used yet. */
static int use_again(struct weft_endpoints *e, struct weft_error *err)
{
    if (e->due != NULL) {
        return weft_endpoints_use(e, weft_steal(&e->due), err);
    }
    if (e->machine == NULL || e->stopped) {
        return 0;
    }
    bool any = false;
    const int rc = use_pools(e, e->machine, &any, err);
    plan_again(e, rc);
    return rc;
}

static void on_again(void *data)
{
    struct weft_endpoints *e = data;
    WEFT_CHECK(e, ENDPOINTS_MAGIC);
    struct weft_error err = {0};
    const int rc = use_again(e, &err);
    weft_log(rc < 0 ? WEFT_LOG_WARN : WEFT_LOG_INFO, "machine-again",
             WEFT_KV_S("result", rc < 0 ? err.message : "used"));
}

int weft_endpoints_configure(struct weft_endpoints *endpoints, enum weft_policy policy, bool always,
                             struct weft_error *err)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    endpoints->options.policy = policy;
    endpoints->options.always = always;
    for (size_t i = 0; i < endpoints->count; i++) {
        weft_service_set_policy(endpoints->items[i]->service, policy,
                                endpoints->options.pools->sharing);
    }
    return use_again(endpoints, err);
}

const struct weft_machine *weft_endpoints_machine(const struct weft_endpoints *endpoints)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    return endpoints->machine;
}

const char *weft_endpoints_left_out(const struct weft_endpoints *endpoints)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    return endpoints->left_out;
}

size_t weft_endpoints_count(const struct weft_endpoints *endpoints)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    return endpoints->count;
}

struct weft_endpoint_view weft_endpoints_at(const struct weft_endpoints *endpoints, size_t index)
{
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    const struct endpoint *endpoint = endpoints->items[index];
    return (struct weft_endpoint_view){
        .resource = endpoint->resource, .service = endpoint->service, .link = endpoint->link};
}

/* ---- life ---- */

int weft_endpoints_new(const struct weft_endpoints_options *options,
                       struct weft_endpoints **ret_endpoints, struct weft_error *err)
{
    weft_auto(weft_endpoints_free) struct weft_endpoints *endpoints =
        weft_calloc(1, sizeof(*endpoints));
    if (endpoints == NULL) {
        return weft_err_nomem(err);
    }
    endpoints->magic = ENDPOINTS_MAGIC;
    endpoints->options = *options;
    const int rc = weft_timer_new(options->loop, on_again, endpoints, &endpoints->again, err);
    if (rc < 0) {
        return rc;
    }
    *ret_endpoints = weft_steal(&endpoints);
    return 0;
}

void weft_endpoints_stop(struct weft_endpoints *endpoints)
{
    if (endpoints == NULL) {
        return;
    }
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    endpoints->stopped = true;
    weft_timer_free(weft_steal(&endpoints->again));
    for (size_t i = 0; i < endpoints->count; i++) {
        if (endpoints->items[i]->link != NULL) {
            weft_link_stop(endpoints->items[i]->link);
        }
    }
}

void weft_endpoints_free(struct weft_endpoints *endpoints)
{
    if (endpoints == NULL) {
        return;
    }
    WEFT_CHECK(endpoints, ENDPOINTS_MAGIC);
    for (size_t i = 0; i < endpoints->count; i++) {
        endpoint_free(endpoints->items[i]);
    }
    weft_timer_free(endpoints->again);
    weft_machine_free(endpoints->due);
    weft_machine_free(endpoints->machine);
    endpoints->magic = 0;
    weft_free(endpoints);
}
