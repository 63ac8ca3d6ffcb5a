/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for the pods of Nodes, a few Nodes at a time. Must not decide who waits. */
#include "controller/gangs.h"

#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/pods.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/path.h"

enum { MAGIC = 0x7767616e, FLIGHTS = 8, QUERY_MAX = 1024 };

#define TIMEOUT_NS (4 * WEFT_NS_PER_S)
/* a little less than keep-settle.c's GANG_NS, after which a pass looks again */
#define OLD_NS (25 * WEFT_NS_PER_S)

struct entry {
    char *node;
    enum weft_keep_gang state; /* UNKNOWN: never answered */
    int64_t asked_at;
    bool waits; /* for its turn, or for its answer */
};

struct flight {
    struct weft_gangs *gangs;
    struct weft_kube_call *call; /* NULL: free */
    size_t entry;
};

struct weft_gangs {
    unsigned magic;
    struct weft_gangs_options options;
    char *path;
    struct weft_map *index;
    struct entry *entries;
    size_t count;
    size_t cap;
    size_t next; /* entry to look at for the next request */
    size_t waiting;
    struct flight flights[FLIGHTS];
    bool forbidden;
    bool wanted; /* somebody waits for the answers */
};

int weft_gangs_new(const struct weft_gangs_options *options, struct weft_gangs **ret_gangs,
                   struct weft_error *err)
{
    weft_auto(weft_gangs_free) struct weft_gangs *g = weft_calloc(1, sizeof(*g));
    if (g == NULL) {
        return weft_err_nomem(err);
    }
    g->magic = MAGIC;
    g->options = *options;
    g->path = weft_kube_path(&weft_kube_pods, NULL, NULL);
    g->index = weft_map_new(WEFT_NODES_MAX);
    if (g->path == NULL || g->index == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < FLIGHTS; i++) {
        g->flights[i].gangs = g;
    }
    *ret_gangs = weft_steal(&g);
    return 0;
}

static void drop_entries(struct weft_gangs *g)
{
    for (size_t i = 0; i < FLIGHTS; i++) {
        weft_kube_call_cancel(g->flights[i].call);
        g->flights[i].call = NULL;
    }
    for (size_t i = 0; i < g->count; i++) {
        weft_free(g->entries[i].node);
    }
    g->count = 0;
    g->next = 0;
    g->waiting = 0;
    g->wanted = false;
    weft_map_free(g->index);
    g->index = NULL;
}

void weft_gangs_free(struct weft_gangs *g)
{
    if (g == NULL) {
        return;
    }
    WEFT_CHECK(g, MAGIC);
    drop_entries(g);
    weft_free(g->entries);
    weft_free(g->path);
    g->magic = 0;
    weft_free(g);
}

void weft_gangs_forget(struct weft_gangs *g)
{
    if (g->count > 0) {
        drop_entries(g);
    }
}

enum weft_keep_gang weft_gangs_of(const struct weft_gangs *g, const char *node, int64_t now)
{
    size_t at = 0;
    if (g->forbidden) {
        return WEFT_KEEP_GANG_NONE;
    }
    if (g->count == 0 || !weft_map_get(g->index, node, &at)) {
        return WEFT_KEEP_GANG_UNKNOWN;
    }
    const struct entry *e = &g->entries[at];
    const bool old = now - e->asked_at >= OLD_NS;
    return e->state == WEFT_KEEP_GANG_NONE && old ? WEFT_KEEP_GANG_UNKNOWN : e->state;
}

bool weft_gangs_busy(const struct weft_gangs *g)
{
    return g->waiting > 0;
}

/* ---- asking ---- */

static void on_pods(void *data, const struct weft_kube_result *result);

static int put_query(const char *node, struct weft_buf *query)
{
    weft_auto(weft_buf_done) struct weft_buf selector;
    weft_buf_init(&selector, QUERY_MAX);
    (void)weft_buf_printf(&selector, "spec.nodeName=%s", node);
    weft_kube_put_param(query, "fieldSelector", weft_buf_text(&selector));
    /* from the server's cache, which has an index by node: a quorum read would go through all */
    weft_kube_put_param(query, "resourceVersion", "0");
    return selector.status < 0 ? selector.status : query->status;
}

static int send(struct flight *f, size_t entry)
{
    struct weft_gangs *g = f->gangs;
    weft_auto(weft_buf_done) struct weft_buf query;
    weft_buf_init(&query, QUERY_MAX);
    if (put_query(g->entries[entry].node, &query) < 0) {
        return -ENOMEM;
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET,
                                    .path = g->path,
                                    .query = weft_buf_text(&query),
                                    .timeout_ns = TIMEOUT_NS,
                                    .on_done = on_pods,
                                    .data = f};
    f->entry = entry;
    return weft_kube_submit(g->options.client, &op, &f->call, NULL);
}

static void answer(struct weft_gangs *g, struct entry *e, enum weft_keep_gang state)
{
    e->state = state;
    e->waits = false;
    g->waiting--;
}

/* Fills the free flights. What cannot even be sent counts as not answered. */
static void fly(struct weft_gangs *g)
{
    for (size_t i = 0; i < FLIGHTS; i++) {
        while (g->flights[i].call == NULL && g->next < g->count) {
            struct entry *e = &g->entries[g->next++];
            if (e->waits && send(&g->flights[i], g->next - 1) < 0) {
                answer(g, e, WEFT_KEEP_GANG_RUNS);
            }
        }
    }
}

static bool any_gang(const struct weft_json *list)
{
    const struct weft_json *items = weft_json_get(list, "items");
    for (size_t i = 0; i < weft_json_count(items); i++) {
        if (weft_pod_in_gang(weft_json_at(items, i)) != 0) { /* not understood: it may be */
            return true;
        }
    }
    return false;
}

static void on_pods(void *data, const struct weft_kube_result *result)
{
    struct flight *f = data;
    struct weft_gangs *g = f->gangs;
    WEFT_CHECK(g, MAGIC);
    f->call = NULL;
    struct entry *e = &g->entries[f->entry];
    if (result->error.code == 0) {
        answer(g, e, any_gang(result->body) ? WEFT_KEEP_GANG_RUNS : WEFT_KEEP_GANG_NONE);
    } else if (result->status == 403 || result->status == 404) {
        /* no right, or a server without pods */
        answer(g, e, WEFT_KEEP_GANG_NONE);
        if (!g->forbidden) {
            g->forbidden = true;
            g->options.forbidden(g->options.data, &result->error);
        }
    } else {
        weft_log(WEFT_LOG_WARN, "pods not read", WEFT_KV_S("node", e->node),
                 WEFT_KV_S("error", result->error.message));
        answer(g, e, WEFT_KEEP_GANG_RUNS);
    }
    fly(g);
    if (g->waiting == 0 && g->wanted) {
        g->wanted = false;
        g->options.answered(g->options.data);
    }
}

static void ask_again(struct weft_gangs *g, size_t entry, int64_t now)
{
    struct entry *e = &g->entries[entry];
    if (!e->waits) {
        e->waits = true;
        e->asked_at = now;
        /* one may have come since; one that runs is believed in until it is known to be gone */
        e->state = e->state == WEFT_KEEP_GANG_NONE ? WEFT_KEEP_GANG_UNKNOWN : e->state;
        g->waiting++;
        g->next = entry < g->next ? entry : g->next;
    }
}

static int add_entry(struct weft_gangs *g, const char *node, size_t *ret_entry)
{
    if (g->index == NULL) {
        g->index = weft_map_new(WEFT_NODES_MAX);
    }
    void *list = g->entries;
    int rc = g->index == NULL ? -ENOMEM
                              : weft_array_reserve(&list, &g->cap, g->count + 1,
                                                   sizeof(*g->entries), WEFT_NODES_MAX);
    g->entries = list;
    char *copy = rc < 0 ? NULL : weft_strdup(node);
    rc = rc < 0 ? rc : copy == NULL ? -ENOMEM : weft_map_put(g->index, node, g->count);
    if (rc < 0) {
        weft_free(copy);
        return rc;
    }
    g->entries[g->count] = (struct entry){.node = copy, .state = WEFT_KEEP_GANG_UNKNOWN};
    *ret_entry = g->count++;
    return 0;
}

static int ask(struct weft_gangs *g, const char *node)
{
    size_t at = 0;
    const bool known = g->count > 0 && weft_map_get(g->index, node, &at);
    const int rc = known ? 0 : add_entry(g, node, &at);
    if (rc == 0) {
        ask_again(g, at, weft_clock_monotonic(weft_clock_system()));
        fly(g);
    }
    return rc;
}

int weft_gangs_ask(struct weft_gangs *g, const char *node)
{
    const int rc = ask(g, node);
    g->wanted = g->wanted || rc == 0;
    return rc;
}

void weft_gangs_ask_ahead(struct weft_gangs *g, const char *node)
{
    if (!g->forbidden && g->count < FLIGHTS) {
        (void)ask(g, node); /* else it is asked about when it is wanted */
    }
}

void weft_gangs_refresh(struct weft_gangs *g, int64_t now)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct entry *e = &g->entries[i];
        if (e->state != WEFT_KEEP_GANG_NONE && now - e->asked_at >= OLD_NS) {
            ask_again(g, i, now);
            g->wanted = true;
        }
    }
    fly(g);
}
