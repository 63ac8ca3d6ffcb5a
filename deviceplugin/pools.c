/* SPDX-License-Identifier: Apache-2.0 */
/* From a machine and settings to resources. */
#include "deviceplugin/pools.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/options.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"

enum { PROBLEMS_MAX = 16, RESOURCE_TEXT_MAX = 320 };

static const char *const names[] = {[WEFT_PARTITIONS_AUTO] = "auto",
                                    [WEFT_PARTITIONS_NONE] = "none",
                                    [WEFT_PARTITIONS_SINGLE] = "single",
                                    [WEFT_PARTITIONS_MIXED] = "mixed"};

const char *weft_partitions_name(enum weft_partitions partitions)
{
    return names[partitions];
}

int weft_partitions_parse(const char *text, enum weft_partitions *ret_partitions)
{
    for (int i = 0; i < WEFT_PARTITIONS_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_partitions = (enum weft_partitions)i;
            return 0;
        }
    }
    return -EINVAL;
}

int weft_sharing_parse(const char *text, enum weft_sharing *ret_sharing)
{
    const bool packed = strcmp(text, "packed") == 0;
    if (!packed && strcmp(text, "distributed") != 0) {
        return -EINVAL;
    }
    *ret_sharing = packed ? WEFT_SHARING_PACKED : WEFT_SHARING_DISTRIBUTED;
    return 0;
}

void weft_pool_settings_done(struct weft_pool_settings *settings)
{
    weft_free(settings->resource);
    for (size_t i = 0; i < settings->rename_count; i++) {
        weft_free(settings->renames[i].pattern);
        weft_free(settings->renames[i].resource);
    }
    for (size_t i = 0; i < settings->share_count; i++) {
        weft_free(settings->shares[i].resource);
        weft_free(settings->shares[i].rename);
    }
    weft_free(settings->renames);
    weft_free(settings->shares);
    *settings = (struct weft_pool_settings){0};
}

void weft_pools_done(struct weft_pools *pools)
{
    for (size_t i = 0; i < pools->count; i++) {
        weft_free(pools->items[i].resource);
        weft_free(pools->items[i].devices);
    }
    for (size_t i = 0; i < pools->problem_count; i++) {
        weft_free(pools->problems[i]);
    }
    weft_free(pools->items);
    weft_free(pools->problems);
    weft_free(pools->unused);
    *pools = (struct weft_pools){0};
}

/* ---- the work ---- */

struct plan {
    const struct weft_machine *machine;
    const struct weft_pool_settings *settings;
    struct weft_pools pools;
    const char *base; /* the resource of whole devices */
    enum weft_partitions partitions;
};

static bool is_partition(const struct weft_device *d)
{
    return d->parent >= 0;
}

static int add_problem(struct plan *p, char *text)
{
    if (text == NULL) {
        return -ENOMEM;
    }
    if (p->pools.problem_count == PROBLEMS_MAX) {
        weft_free(text);
        return 0;
    }
    p->pools.problems[p->pools.problem_count++] = text;
    return 0;
}

/* The pool of that resource, made if it is new. 0, -ENOMEM, -EFBIG. */
static int pool_of(struct plan *p, const char *resource, struct weft_pool **ret_pool)
{
    for (size_t i = 0; i < p->pools.count; i++) {
        if (strcmp(p->pools.items[i].resource, resource) == 0) {
            *ret_pool = &p->pools.items[i];
            return 0;
        }
    }
    if (p->pools.count == WEFT_POOLS_MAX) {
        return -EFBIG;
    }
    struct weft_pool *pool = &p->pools.items[p->pools.count];
    *pool = (struct weft_pool){.resource = weft_strdup(resource), .replicas = 1};
    pool->devices = weft_calloc(p->machine->device_count + 1, sizeof(*pool->devices));
    p->pools.count++; /* freed with the others, also half made */
    if (pool->resource == NULL || pool->devices == NULL) {
        return -ENOMEM;
    }
    *ret_pool = pool;
    return 0;
}

/* "nvidia.com" + "mig-" + "1g.10gb+me" as NVIDIA writes it: "nvidia.com/mig-1g.10gb.me". What else
 * a resource name cannot have becomes a dash. */
static int profile_resource(const struct plan *p, const char *profile, char *resource, size_t size)
{
    const char *slash = strchr(p->base, '/');
    struct weft_buf text;
    weft_buf_init(&text, size - 1);
    (void)weft_buf_append(&text, p->base, (size_t)(slash - p->base) + 1);
    (void)weft_buf_puts(&text, strcmp(p->machine->vendor, "nvidia") == 0 ? "mig-" : "");
    for (; *profile != '\0'; profile++) {
        const char c = *profile;
        const bool plain = isalnum((unsigned char)c) != 0 || c == '.' || c == '_' || c == '-';
        (void)weft_buf_putc(&text, plain ? (char)tolower((unsigned char)c) : c == '+' ? '.' : '-');
    }
    const int rc = text.status;
    if (rc == 0) {
        memcpy(resource, weft_buf_text(&text), text.len + 1);
    }
    weft_buf_done(&text);
    return rc;
}

static const char *renamed(const struct plan *p, const struct weft_device *d)
{
    const bool partition = is_partition(d);
    for (size_t i = 0; i < p->settings->rename_count; i++) {
        const struct weft_pool_rename *r = &p->settings->renames[i];
        if (r->partitions == partition &&
            fnmatch(r->pattern, partition ? d->profile : d->model, 0) == 0) {
            return r->resource;
        }
    }
    return NULL;
}

/* Under which resource the device goes; "" for none. 0 or -errno. */
static int resource_of(const struct plan *p, const struct weft_device *d, char *resource,
                       size_t size, struct weft_error *err)
{
    const char *other = renamed(p, d);
    const bool apart = is_partition(d) && p->partitions == WEFT_PARTITIONS_MIXED;
    if (is_partition(d) && p->partitions == WEFT_PARTITIONS_NONE) {
        resource[0] = '\0';
        return 0;
    }
    if (other != NULL || !apart) {
        const char *name = other != NULL ? other : p->base;
        memcpy(resource, name, strlen(name) + 1);
        return 0;
    }
    const int rc = profile_resource(p, d->profile, resource, size);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc < 0 || d->profile[0] == '\0' || !weft_resource_valid(resource)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "device %s: no resource name can be made of its profile \"%s\"", d->id,
                            d->profile);
    }
    return 0;
}

/* single: all or nothing, as NVIDIA's plugin has it. true if the machine is not so. */
static bool not_single(const struct weft_machine *m, const struct weft_device **ret_odd)
{
    for (size_t i = 1; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        if (is_partition(d) != is_partition(&m->devices[0]) ||
            strcmp(d->profile, m->devices[0].profile) != 0) {
            *ret_odd = d;
            return true;
        }
    }
    return false;
}

static int place(struct plan *p, size_t number, struct weft_error *err)
{
    char resource[RESOURCE_TEXT_MAX];
    int rc = resource_of(p, &p->machine->devices[number], resource, sizeof(resource), err);
    if (rc < 0 || resource[0] == '\0') {
        return rc;
    }
    struct weft_pool *pool = NULL;
    rc = pool_of(p, resource, &pool);
    if (rc < 0) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d resources",
                            (int)WEFT_POOLS_MAX);
    }
    pool->devices[pool->device_count++] = number;
    return 0;
}

static int place_all(struct plan *p, struct weft_error *err)
{
    const struct weft_machine *m = p->machine;
    const struct weft_device *odd = NULL;
    size_t left_out = 0;
    if (p->partitions == WEFT_PARTITIONS_SINGLE && not_single(m, &odd)) {
        char *text = weft_asprintf("strategy single: %s has profile \"%s\" and %s has \"%s\": no "
                                   "device is advertised; the strategy for this node is mixed",
                                   m->devices[0].id, m->devices[0].profile, odd->id, odd->profile);
        return add_problem(p, text) < 0 ? weft_err_nomem(err) : 0;
    }
    for (size_t i = 0; i < m->device_count; i++) {
        left_out += is_partition(&m->devices[i]) && p->partitions == WEFT_PARTITIONS_NONE ? 1 : 0;
        const int rc = place(p, i, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (left_out > 0) {
        char *text = weft_asprintf("%zu partitions are not advertised: the strategy is none; "
                                   "single or mixed advertises them",
                                   left_out);
        return add_problem(p, text) < 0 ? weft_err_nomem(err) : 0;
    }
    return 0;
}

/* ---- sharing ---- */

static char *shared_name(const struct weft_pool_settings *settings,
                         const struct weft_pool_share *share)
{
    if (share->rename != NULL) {
        return weft_strdup(share->rename);
    }
    return settings->rename_by_default ? weft_asprintf("%s.shared", share->resource)
                                       : weft_strdup(share->resource);
}

static int share_pools(struct plan *p, struct weft_error *err)
{
    const struct weft_pool_settings *settings = p->settings;
    if (settings->share_count > 0) {
        p->pools.unused = weft_calloc(settings->share_count, sizeof(*p->pools.unused));
        if (p->pools.unused == NULL) {
            return weft_err_nomem(err);
        }
    }
    for (size_t i = 0; i < settings->share_count; i++) {
        const struct weft_pool_share *share = &settings->shares[i];
        bool used = false;
        for (size_t k = 0; k < p->pools.count; k++) {
            struct weft_pool *pool = &p->pools.items[k];
            if (pool->replicas > 1 || strcmp(pool->resource, share->resource) != 0) {
                continue;
            }
            char *name = shared_name(settings, share);
            if (name == NULL) {
                return weft_err_nomem(err);
            }
            weft_free(pool->resource);
            pool->resource = name;
            pool->replicas = share->replicas;
            pool->fail_above_one = settings->fail_above_one;
            used = pool->device_count > 0;
        }
        if (!used) {
            p->pools.unused[p->pools.unused_count++] = i;
        }
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct weft_pool *x = a, *y = b;
    return strcmp(x->resource, y->resource);
}

/* Two pools may have been given one name by sharing. */
static int check_names(const struct plan *p, struct weft_error *err)
{
    for (size_t i = 0; i < p->pools.count; i++) {
        for (size_t k = i + 1; k < p->pools.count; k++) {
            if (strcmp(p->pools.items[i].resource, p->pools.items[k].resource) == 0) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "two resources would be called %s", p->pools.items[i].resource);
            }
        }
    }
    return 0;
}

static int plan(struct plan *p, struct weft_error *err)
{
    p->pools.items = weft_calloc(WEFT_POOLS_MAX, sizeof(*p->pools.items));
    p->pools.problems = weft_calloc(PROBLEMS_MAX, sizeof(*p->pools.problems));
    struct weft_pool *base = NULL;
    if (p->pools.items == NULL || p->pools.problems == NULL || pool_of(p, p->base, &base) < 0) {
        return weft_err_nomem(err);
    }
    int rc = place_all(p, err);
    rc = rc < 0 ? rc : share_pools(p, err);
    rc = rc < 0 ? rc : check_names(p, err);
    if (rc == 0 && p->pools.count > 2) {
        qsort(p->pools.items + 1, p->pools.count - 1, sizeof(*p->pools.items), by_name);
    }
    return rc;
}

int weft_pools_plan(const struct weft_machine *machine, const struct weft_pool_settings *settings,
                    struct weft_pools *ret_pools, struct weft_error *err)
{
    const bool nvidia = strcmp(machine->vendor, "nvidia") == 0;
    struct plan p = {
        .machine = machine,
        .settings = settings,
        .base = settings->resource != NULL ? settings->resource
                                           : weft_resource_of_vendor(machine->vendor),
        .partitions = settings->partitions != WEFT_PARTITIONS_AUTO ? settings->partitions
                      : nvidia                                     ? WEFT_PARTITIONS_NONE
                                                                   : WEFT_PARTITIONS_AUTO,
    };
    const int rc = plan(&p, err);
    if (rc < 0) {
        weft_pools_done(&p.pools);
        return rc;
    }
    *ret_pools = p.pools;
    return 0;
}
