/* SPDX-License-Identifier: Apache-2.0 */
/* Reading providerIDs: each Node once, few at a time, failures and Nodes that have none yet. The
 * API server is a table here: what was asked waits until the test answers. */
#include "controller/instances.h"

#include <errno.h>
#include <stdio.h>

#include "controller/view.h"
#include "pkg/base/clock.h"
#include "pkg/fabric/inventory.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/meta.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"
#include "tests/unit/unit.h"

enum { ASKED_MAX = 256 };

struct asked {
    char node[64];
    weft_kube_result_fn on_done;
    void *data;
    bool open;
};

/* The module's data is the world: submit gets it as the client. */
struct world {
    struct weft_loop *loop;
    struct weft_view_nodes nodes;
    struct weft_instances *instances;
    struct asked asked[ASKED_MAX];
    size_t asked_count, open, most_open, known, news, errors;
    bool refuse;
};

static int submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct world *w = (void *)client;
    CHECK_INT(op->verb, WEFT_KUBE_GET);
    if (w->refuse || w->asked_count == ASKED_MAX) {
        return weft_err_nomem(err);
    }
    struct asked *asked = &w->asked[w->asked_count++];
    *asked = (struct asked){.on_done = op->on_done, .data = op->data, .open = true};
    CHECK(strncmp(op->path, "/api/v1/nodes/", 14) == 0);
    (void)snprintf(asked->node, sizeof(asked->node), "%s", op->path + 14);
    w->open++;
    w->most_open = w->open > w->most_open ? w->open : w->most_open;
    *ret_call = (void *)asked;
    return 0;
}

static void cancel(struct weft_kube_call *call)
{
    struct asked *asked = (void *)call;
    asked->open = false;
}

static void on_known(void *data, bool news)
{
    struct world *w = data;
    w->known += !news;
    w->news += news;
}

static void on_error(void *data, const char *node, const struct weft_error *err)
{
    struct world *w = data;
    CHECK(node[0] == 'n' && err->code < 0);
    w->errors++;
}

static void add(struct world *w, const char *name, const char *uid, const char *version)
{
    const struct weft_kube_meta meta = {
        .name = name, .ns = "", .uid = uid, .resource_version = version};
    enum weft_view_change change = WEFT_VIEW_SAME;
    CHECK_INT(weft_view_nodes_put(&w->nodes, &meta, &change), 0);
}

static void begin(struct world *w, unsigned nodes)
{
    *w = (struct world){0};
    CHECK_INT(weft_loop_new(&w->loop, NULL), 0);
    CHECK_INT(weft_view_nodes_init(&w->nodes, "weft.dev/"), 0);
    for (unsigned i = 0; i < nodes; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", i);
        add(w, name, "u", "1");
    }
    const struct weft_instances_env env = {.submit = submit,
                                           .cancel = cancel,
                                           .client = (void *)w,
                                           .nodes = &w->nodes,
                                           .on_known = on_known,
                                           .on_error = on_error,
                                           .data = w,
                                           .retry_ns = 2 * WEFT_NS_PER_MS};
    CHECK_INT(weft_instances_new(w->loop, &env, &w->instances, NULL), 0);
    weft_instances_look(w->instances);
}

static void end(struct world *w)
{
    weft_instances_free(w->instances);
    weft_view_nodes_done(&w->nodes);
    weft_loop_free(w->loop);
}

/* Answers the first open question: status 200 with a providerID (NULL: none). */
static void answer(struct world *w, int status, const char *provider_id)
{
    size_t i = 0;
    while (i < w->asked_count && !w->asked[i].open) {
        i++;
    }
    if (i == w->asked_count) {
        CU_FAIL("nothing was asked");
        return;
    }
    weft_autofree char *text = weft_asprintf(
        provider_id != NULL ? "{\"spec\":{\"providerID\":\"%s\"}}" : "{\"spec\":{}}", provider_id);
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "t", &doc, NULL), 0);
    struct weft_kube_result result = {.status = status, .reason = "", .body = doc};
    if (status != 200) {
        result.error.code = -EIO;
        result.error.retryable = status >= 500;
    }
    w->asked[i].open = false;
    w->open--;
    w->asked[i].on_done(w->asked[i].data, &result);
}

/* Runs the loop until so many were asked in all, or for 40 ms if it may be no more. */
static void run_to(struct world *w, size_t asked)
{
    const struct weft_clock *clock = weft_clock_system();
    const int64_t limit = weft_clock_monotonic(clock) + 5 * WEFT_NS_PER_S;
    const bool never = false;
    while (w->asked_count < asked && weft_clock_monotonic(clock) < limit) {
        (void)weft_loop_run_until(w->loop, &never, WEFT_NS_PER_MS);
    }
    (void)weft_loop_run_until(w->loop, &never, 40 * WEFT_NS_PER_MS);
    CHECK_INT(w->asked_count, asked);
}

static const char *instance_of(const struct world *w, const char *name)
{
    const struct weft_view_node *entry = weft_view_nodes_get(&w->nodes, name);
    return entry != NULL ? entry->instance : NULL;
}

static void test_each_once(void)
{
    struct world w;
    begin(&w, 20);
    run_to(&w, WEFT_INSTANCES_FLIGHTS); /* the others wait for answers */
    CHECK(!weft_instances_known(w.instances));
    for (unsigned i = 0; i < 20; i++) {
        char id[64];
        run_to(&w, i + 8 < 20 ? i + 8 : 20);
        (void)snprintf(id, sizeof(id), "aws:///us-west-2a/i-%04u", i);
        answer(&w, 200, id);
    }
    run_to(&w, 20);
    CHECK_INT(w.most_open, WEFT_INSTANCES_FLIGHTS);
    CHECK(weft_instances_known(w.instances));
    CHECK_INT(w.known, 1);
    CHECK_STR(instance_of(&w, "n7"), "i-0007");
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory = NULL;
    CHECK_INT(weft_instances_inventory(&w.nodes, &inventory), 0);
    CHECK_STR(weft_nic_inventory_node_named(inventory, "i-0019"), "n19");
    CHECK(weft_nic_inventory_node_named(inventory, "i-0020") == NULL);
    /* a heart-beat asks nothing; a new node and a new one under an old name do */
    add(&w, "n3", "u", "30");
    add(&w, "n4", "u-new", "31");
    add(&w, "n20", "u", "32");
    weft_instances_look(w.instances);
    run_to(&w, 22);
    CHECK(!weft_instances_known(w.instances));
    CHECK_STR(w.asked[20].node, "n20");
    CHECK_STR(w.asked[21].node, "n4");
    answer(&w, 200, "i-20");
    answer(&w, 200, "ocid1.instance.oc1..aaaa");
    run_to(&w, 22);
    CHECK_STR(instance_of(&w, "n4"), "ocid1.instance.oc1..aaaa");
    CHECK(weft_instances_known(w.instances));
    CHECK_INT(w.errors, 0);
    end(&w);
}

static void test_failures(void)
{
    struct world w;
    begin(&w, 2);
    w.refuse = true; /* no memory for a call: later */
    run_to(&w, 0);
    w.refuse = false;
    run_to(&w, 2);
    answer(&w, 503, NULL); /* asked again, as nobody knows which node it is */
    CHECK(!weft_instances_known(w.instances));
    answer(&w, 200, "i-1");
    run_to(&w, 3);
    CHECK_STR(w.asked[2].node, w.asked[0].node);
    CHECK(!weft_instances_known(w.instances));
    answer(&w, 403, NULL); /* will be the same the next time: it is none that we know of */
    (void)weft_loop_run_until(w.loop, &(const bool){false}, 5 * WEFT_NS_PER_MS);
    CHECK(w.errors == 2);
    CHECK_STR(instance_of(&w, w.asked[0].node), "");
    CHECK(weft_instances_known(w.instances));
    end(&w);
}

/* A cloud's own controller may set the providerID a moment later. */
static void test_late(void)
{
    struct world w;
    begin(&w, 2);
    run_to(&w, 2);
    answer(&w, 200, NULL);
    answer(&w, 404, NULL); /* gone before it was read: the watch says so too */
    weft_view_nodes_gone(&w.nodes, w.asked[1].node, "u");
    while (!weft_instances_known(w.instances)) {
        (void)weft_loop_run_until(w.loop, &(const bool){false}, WEFT_NS_PER_MS);
    }
    CHECK_INT(w.known, 1);
    run_to(&w, 3);                            /* after 10 to 20 ms */
    CHECK(weft_instances_known(w.instances)); /* nobody waits for that */
    answer(&w, 200, "aws:///x/i-9");
    CHECK_INT(w.news, 1);
    CHECK_INT(w.known, 1);
    CHECK_STR(instance_of(&w, w.asked[0].node), "i-9");
    run_to(&w, 3);
    CHECK_INT(w.errors, 0);
    end(&w);
}

/* Nodes that go and change places in the cache while they are asked about. */
static void test_moved(void)
{
    struct world w;
    begin(&w, 12);
    run_to(&w, 8);
    for (unsigned i = 0; i < 8; i++) { /* the last ones, not asked yet, move to the front */
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", i);
        weft_view_nodes_gone(&w.nodes, name, "u");
    }
    weft_view_nodes_forget(&w.nodes);
    CHECK_INT(w.nodes.count, 4);
    for (unsigned i = 0; i < 8; i++) {
        answer(&w, 200, "i-gone");
    }
    run_to(&w, 12);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(w.asked[8 + i].node[1] != '0'); /* n8 … n11 */
        answer(&w, 200, "i-here");
    }
    run_to(&w, 12);
    CHECK(weft_instances_known(w.instances));
    CHECK_STR(instance_of(&w, "n11"), "i-here");
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *inventory = NULL;
    CHECK_INT(weft_instances_inventory(&w.nodes, &inventory), 0);
    /* four nodes say that they are the same instance: it is nobody's */
    CHECK(weft_nic_inventory_node_named(inventory, "i-here") == NULL);
    end(&w);
}

static void test_wanted(void)
{
    static const struct {
        const char *source;
        bool wanted;
    } cases[] = {
        {"labels: {preset: aws}", false},
        {"awsApiFile: {file: /x/aws.json}", true},
        {"awsApiFile: {file: /x/aws.json, nodeMap: /x/map.yaml}", false},
        {"ociImds: {file: /x/oci.json}", true},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_autofree char *text = weft_asprintf("apiVersion: weft.dev/v1alpha1\n"
                                                 "kind: ControllerConfig\n"
                                                 "tiers: [leaf, spine, core, block, island]\n"
                                                 "sources:\n- %s\n",
                                                 cases[i].source);
        weft_auto(weft_config_free) struct weft_config *config = NULL;
        struct weft_error err = {0};
        CHECK_INT(weft_config_parse(text, strlen(text), "c", &config, &err), 0);
        CHECK_STR(err.message, "");
        if (config != NULL) {
            CHECK_INT(weft_instances_wanted(config), cases[i].wanted);
        }
    }
    CHECK_STR(weft_instances_id("aws:///us-west-2a/i-0123"), "i-0123");
    CHECK_STR(weft_instances_id("oci://ocid1.instance.oc1..a"), "ocid1.instance.oc1..a");
    CHECK_STR(weft_instances_id("ocid1.instance.oc1..a"), "ocid1.instance.oc1..a");
    CHECK_STR(weft_instances_id(""), "");
}

WEFT_SUITE(instances, {"each_once", test_each_once}, {"failures", test_failures},
           {"late", test_late}, {"moved", test_moved}, {"wanted", test_wanted})
