/* SPDX-License-Identifier: Apache-2.0 */
/* Plans carried out against a server that fails in every way at every write: whatever happens, each
 * state on the way passes the model of Volcano's cache, and after planning again the wanted state
 * is reached with no write too many. */
#include "pkg/apply/apply.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/model.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernode_server.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

enum { ROUNDS_MAX = 12, PAIRS = 16 };

struct drive {
    struct hypernode_server server;
    struct weft_hypernode_set view;
    struct weft_apply *apply;
    enum weft_apply_outcome outcome;
    enum weft_apply_outcome first; /* of the first round */
    struct weft_error error;
    int64_t retry_after;
    size_t confirmed;
    bool done;
    unsigned writes_allowed; /* then may_write says no */
    unsigned rounds;
};

static bool may_write(void *data)
{
    const struct drive *d = data;
    return d->server.writes < d->writes_allowed;
}

static const struct weft_hypernode_set *view(void *data)
{
    const struct drive *d = data;
    return &d->view;
}

static void on_object(void *data, const struct weft_hypernode *hn)
{
    struct drive *d = data;
    struct weft_hypernode copy = {0};
    if (weft_hypernode_copy(hn, &copy) == 0 && weft_hypernode_set_put(&d->view, &copy) < 0) {
        weft_hypernode_done(&copy);
    }
}

static void on_gone(void *data, const char *name, const char *uid)
{
    struct drive *d = data;
    (void)uid;
    (void)weft_hypernode_set_remove(&d->view, name);
}

static void on_done(void *data, const struct weft_apply_result *result)
{
    struct drive *d = data;
    CHECK(!d->done);
    d->done = true;
    d->outcome = result->outcome;
    d->error = result->error;
    d->retry_after = result->retry_after_ns;
    d->confirmed = result->confirmed;
    weft_apply_free(d->apply);
    d->apply = NULL;
}

static void list(struct drive *d)
{
    weft_hypernode_set_done(&d->view);
    d->view = (struct weft_hypernode_set){0};
    CHECK_INT(weft_hypernode_set_copy(&d->server.set, &d->view), 0);
}

static void start(struct drive *d, const struct weft_plan *plan)
{
    const struct weft_apply_env env = {
        .submit = hypernode_server_submit,
        .cancel = hypernode_server_cancel,
        .client = (struct weft_kube_client *)(void *)&d->server,
        .may_write = may_write,
        .view = view,
        .on_object = on_object,
        .on_gone = on_gone,
        .on_done = on_done,
        .data = d,
    };
    d->done = false;
    CHECK_INT(weft_apply_new(plan, "weft.dev/", &env, &d->apply, NULL), 0);
    weft_apply_start(d->apply);
}

static void plan_for(const struct drive *d, const struct weft_hypernode_set *wanted,
                     struct weft_plan *ret_plan)
{
    const struct weft_plan_options options = {.instance = "weft", .check = true};
    struct weft_error err = {0};
    CHECK_INT(weft_plan_build(&d->view, wanted, &options, ret_plan, &err), 0);
    if (err.code != 0) {
        weft_autofree char *from = hypernodes_text(&d->view);
        weft_autofree char *to = hypernodes_text(wanted);
        (void)fprintf(stderr, "plan: %s\nfrom:\n%sto:\n%s", err.message, from, to);
    }
}

/* One plan, carried out to its end. false if there was nothing to do. */
static bool one_round(struct drive *d, const struct weft_hypernode_set *wanted)
{
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    plan_for(d, wanted, &plan);
    if (plan.step_count == 0) {
        return false;
    }
    start(d, &plan);
    while (!d->done && hypernode_server_answer(&d->server)) {
    }
    CHECK(d->done);
    return true;
}

/* Plans and carries out until nothing is left to do. */
static void drive(struct drive *d, const struct weft_hypernode_set *wanted)
{
    list(d);
    for (d->rounds = 0; d->rounds < ROUNDS_MAX && one_round(d, wanted); d->rounds++) {
        if (d->rounds == 0) {
            d->first = d->outcome;
        }
        if (d->outcome == WEFT_APPLY_UNKNOWN) {
            d->server.reads_fail = false;
            list(d);
        }
    }
    CHECK(d->rounds < ROUNDS_MAX);
}

static void drive_init(struct drive *d, const struct weft_hypernode_set *live)
{
    *d = (struct drive){.writes_allowed = UINT32_MAX};
    hypernode_server_init(&d->server, live);
}

static void drive_done(struct drive *d)
{
    weft_apply_free(d->apply);
    weft_hypernode_set_done(&d->view);
    hypernode_server_done(&d->server);
}

/* ---- random fleets ---- */

enum { NODES = 12, LEAVES = 5, SPINES = 3 };

/* Appends "name tier", then a member for each i with of[i] == group. */
static void put_group(struct weft_buf *buf, const char *head, const char *member, const size_t *of,
                      const bool *used, size_t count, size_t group)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (of[i] != group || (used != NULL && !used[i])) {
            continue;
        }
        if (!any) {
            (void)weft_buf_puts(buf, head);
        }
        any = true;
        (void)weft_buf_printf(buf, " %s%zu", member, i);
    }
    (void)weft_buf_puts(buf, any ? "\n" : "");
}

/* A three-tier tree of 12 Nodes in up to 5 leaves, 3 spines and one core; groups without children
 * are left out. */
static char *random_tree(uint64_t *random)
{
    size_t leaf_of[NODES];
    size_t spine_of[LEAVES];
    const size_t core_of[SPINES] = {0};
    bool leaf_used[LEAVES] = {false};
    bool spine_used[SPINES] = {false};
    char head[32];
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 16);
    for (size_t n = 0; n < NODES; n++) {
        leaf_of[n] = (size_t)weft_random_below(random, LEAVES);
        leaf_used[leaf_of[n]] = true;
    }
    for (size_t l = 0; l < LEAVES; l++) {
        spine_of[l] = (size_t)weft_random_below(random, SPINES);
        spine_used[spine_of[l]] = spine_used[spine_of[l]] || leaf_used[l];
        (void)snprintf(head, sizeof(head), "leaf%zu 1", l);
        put_group(&buf, head, "n", leaf_of, NULL, NODES, l);
    }
    for (size_t s = 0; s < SPINES; s++) {
        (void)snprintf(head, sizeof(head), "spine%zu 2", s);
        put_group(&buf, head, "leaf", spine_of, leaf_used, LEAVES, s);
    }
    put_group(&buf, "core 3", "spine", core_of, spine_used, SPINES, 0);
    return weft_buf_steal(&buf);
}

struct pair {
    struct weft_hypernode_set live;
    struct weft_hypernode_set wanted;
    unsigned writes; /* that an undisturbed plan takes */
};

static void pair_init(struct pair *p, uint64_t *random)
{
    *p = (struct pair){0};
    weft_autofree char *live = random_tree(random);
    weft_autofree char *wanted = random_tree(random);
    if (weft_random_below(random, 4) > 0) { /* else a first install */
        hypernodes_read(&p->live, live);
    }
    hypernodes_read(&p->wanted, wanted);
}

static void pair_done(struct pair *p)
{
    weft_hypernode_set_done(&p->live);
    weft_hypernode_set_done(&p->wanted);
}

static void check_state(const struct drive *d, const struct pair *p)
{
    weft_autofree char *want = hypernodes_text(&p->wanted);
    CHECK_SET(&d->server.set, want);
    CHECK_SET(&d->view, want);
}

static void check_undisturbed(struct pair *p)
{
    struct drive d;
    drive_init(&d, &p->live);
    drive(&d, &p->wanted);
    p->writes = d.server.writes;
    check_state(&d, p);
    CHECK(d.rounds <= 1);
    CHECK_INT(d.server.performed, d.server.writes);
    CHECK(d.server.worst <= WEFT_MODEL_LOOSE);
    drive_done(&d);
}

/* Does somebody else change HyperNodes in it? Then the model may see what they did. */
static bool meddles(enum fault fault)
{
    return fault == FAULT_FOREIGN_CHANGE || fault == FAULT_DELETED || fault == FAULT_TAKEN;
}

/* A plan made anew in the middle may take a write or two less than the rest of the first one (what
 * was released by then need not be taken in and released again), or more; a server that is written
 * to in a circle would show as many more. */
static void check_about(unsigned actual, unsigned expected)
{
    if (actual + 2 < expected || actual > expected + 2) {
        CHECK_INT(actual, expected);
    }
}

/* What must be true beside the end state. */
static void check_fault(const struct drive *d, const struct pair *p, enum fault fault)
{
    switch (fault) {
    case FAULT_STATUS_WRITE: /* taken in stride: at most the one refused write more */
        CHECK_INT(d->first, WEFT_APPLY_DONE);
        CHECK(d->server.writes <= p->writes + 1);
        break;
    case FAULT_LOST_DONE: /* read back: the write is not repeated */
        CHECK_INT(d->first, WEFT_APPLY_DONE);
        CHECK_INT(d->server.writes, p->writes);
        break;
    case FAULT_LOST:
        CHECK_INT(d->first, WEFT_APPLY_RETRY);
        check_about(d->server.writes, p->writes + 1);
        check_about(d->server.performed, p->writes);
        break;
    case FAULT_500:
    case FAULT_429:
        CHECK_INT(d->first, WEFT_APPLY_RETRY);
        check_about(d->server.writes, p->writes + 1);
        break;
    case FAULT_403:
        CHECK_INT(d->first, WEFT_APPLY_REFUSED);
        check_about(d->server.writes, p->writes + 1);
        break;
    case FAULT_NO_CRD: /* also for a delete: the object may well be there */
        CHECK_INT(d->first, WEFT_APPLY_MISSING);
        check_about(d->server.writes, p->writes + 1);
        break;
    case FAULT_SUBMIT:
        CHECK_INT(d->first, WEFT_APPLY_RETRY);
        break;
    case FAULT_LATE: /* whichever of the two came first, one of them changed the object */
        check_about(d->server.performed, p->writes);
        break;
    case FAULT_NONE:
    case FAULT_FOREIGN_CHANGE:
    case FAULT_DELETED:
    case FAULT_TAKEN:
    case FAULT_500_DONE:
    case FAULT_COUNT:
        break;
    }
}

static void run_fault(const struct pair *p, enum fault fault, unsigned at, bool reads_fail,
                      uint64_t shuffle)
{
    struct drive d;
    drive_init(&d, &p->live);
    d.server.shuffle = shuffle;
    d.server.fault = fault;
    d.server.fault_at = at;
    d.server.fault_reads = reads_fail;
    drive(&d, &p->wanted);
    if (fault != FAULT_TAKEN) {
        check_state(&d, p);
    }
    if (!reads_fail) {
        check_fault(&d, p, fault);
    }
    if (!meddles(fault)) {
        CHECK(d.server.worst <= WEFT_MODEL_LOOSE);
    }
    if (CU_get_number_of_failures() > 0) {
        (void)fprintf(stderr, "fault %d at write %u of %u, reads fail %d\n", (int)fault, at,
                      p->writes, reads_fail);
    }
    drive_done(&d);
}

static void test_every_fault_at_every_write(void)
{
    uint64_t random = 20261130;
    uint64_t order = 3;
    for (unsigned i = 0; i < PAIRS && CU_get_number_of_failures() == 0; i++) {
        struct pair p;
        pair_init(&p, &random);
        check_undisturbed(&p);
        for (unsigned at = 1; at <= p.writes; at++) {
            for (int fault = 1; fault < FAULT_COUNT; fault++) {
                run_fault(&p, (enum fault)fault, at, false, 0);
                run_fault(&p, (enum fault)fault, at, true, 0);
                run_fault(&p, (enum fault)fault, at, at % 2 == 0, weft_random(&order));
            }
        }
        pair_done(&p);
    }
}

/* Killed after any write: the next life begins with a list and makes the writes that are left. */
static void test_killed_after_every_write(void)
{
    uint64_t random = 7;
    for (unsigned i = 0; i < PAIRS; i++) {
        struct pair p;
        pair_init(&p, &random);
        check_undisturbed(&p);
        for (unsigned at = 0; at < p.writes; at++) {
            struct drive d;
            drive_init(&d, &p.live);
            d.server.shuffle = at % 3; /* 0: in their order */
            list(&d);
            weft_auto(weft_plan_done) struct weft_plan plan = {0};
            plan_for(&d, &p.wanted, &plan);
            start(&d, &plan);
            for (unsigned n = 0; n < at; n++) {
                CHECK(hypernode_server_answer(&d.server));
            }
            weft_apply_free(d.apply);
            d.apply = NULL;
            CHECK(!d.done);
            drive(&d, &p.wanted);
            check_state(&d, &p);
            check_about(d.server.writes, p.writes);
            CHECK(d.server.worst <= WEFT_MODEL_LOOSE);
            drive_done(&d);
        }
        pair_done(&p);
    }
}

/* ---- single matters ---- */

static void setup(struct drive *d, const char *live, const char *wanted,
                  struct weft_hypernode_set *ret_wanted, struct weft_plan *ret_plan)
{
    struct weft_hypernode_set set = {0};
    hypernodes_read(&set, live);
    drive_init(d, &set);
    weft_hypernode_set_done(&set);
    hypernodes_read(ret_wanted, wanted);
    list(d);
    plan_for(d, ret_wanted, ret_plan);
}

#define MOVE_FROM "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n"
#define MOVE_TO "a 1 n0\nb 1 n1 n2 n3\ns 2 a b\n"

static void test_gate_and_stop(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, MOVE_FROM, MOVE_TO, &wanted, &plan);
    CHECK_INT(plan.step_count, 2);
    d.writes_allowed = 0;
    start(&d, &plan);
    CHECK(d.done);
    CHECK_INT(d.outcome, WEFT_APPLY_STOPPED);
    CHECK_INT(d.server.writes, 0);

    d.writes_allowed = 1; /* the Lease is lost between the two */
    start(&d, &plan);
    CHECK(hypernode_server_answer(&d.server));
    CHECK_INT(d.outcome, WEFT_APPLY_STOPPED);
    CHECK_INT(d.confirmed, 1);
    CHECK_SET(&d.server.set, "a 1 n0\nb 1 n2 n3\ns 2 a b\n");
    drive_done(&d);
}

static void test_stop_waits_for_the_answer(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, MOVE_FROM, MOVE_TO, &wanted, &plan);
    start(&d, &plan);
    weft_apply_stop(d.apply);
    CHECK(!d.done);
    CHECK(hypernode_server_answer(&d.server));
    CHECK(d.done);
    CHECK_INT(d.outcome, WEFT_APPLY_STOPPED);
    CHECK_INT(d.confirmed, 1);
    drive_done(&d);
}

/* Between the plan and the delete somebody else's object lists the leaf: it is not deleted. */
static void test_no_delete_of_what_is_listed(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, MOVE_FROM, "a 1 n0 n1\ns 2 a\n", &wanted, &plan);
    start(&d, &plan);
    hypernodes_read(&d.view, "!theirs 2 b\n");
    CHECK(hypernode_server_answer(&d.server)); /* the release of b */
    CHECK(d.done);
    CHECK_INT(d.outcome, WEFT_APPLY_STALE);
    CHECK_SET(&d.server.set, "a 1 n0 n1\nb 1 n2 n3\ns 2 a\n");
    drive_done(&d);
}

/* ---- together ---- */

/* So many leaves of one Node each, under two spines. */
static char *wide_tree(size_t leaves)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 16);
    for (size_t i = 0; i < leaves; i++) {
        (void)weft_buf_printf(&buf, "leaf%02zu 1 n%zu\n", i, i);
    }
    for (size_t s = 0; s < 2; s++) {
        (void)weft_buf_printf(&buf, "spine%zu 2", s);
        for (size_t i = s; i < leaves; i += 2) {
            (void)weft_buf_printf(&buf, " leaf%02zu", i);
        }
        (void)weft_buf_puts(&buf, "\n");
    }
    return weft_buf_steal(&buf);
}

/* Creates of a tier are under way together, more of them with each that went through; the next
 * tier waits for the last of them. The stand-in looks at the latter. */
static void test_creates_together(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *tree = wide_tree(40);
    setup(&d, "", tree, &wanted, &plan);
    CHECK_INT(plan.step_count, 42);
    d.server.shuffle = 5;
    start(&d, &plan);
    CHECK_INT(d.server.under_way, 1);
    CHECK(hypernode_server_answer(&d.server));
    CHECK_INT(d.server.under_way, 2);
    for (size_t i = 1; i < 40; i++) {
        const size_t left = 40 - i;
        const size_t most = i + 1 < WEFT_APPLY_FLIGHTS ? i + 1 : WEFT_APPLY_FLIGHTS;
        CHECK_INT(d.server.under_way, left < most ? left : most);
        CHECK(hypernode_server_answer(&d.server));
    }
    CHECK_INT(d.server.under_way, 2); /* the spines */
    while (hypernode_server_answer(&d.server)) {
    }
    CHECK(d.done);
    CHECK_INT(d.outcome, WEFT_APPLY_DONE);
    CHECK_INT(d.confirmed, 42);
    CHECK_INT(d.server.writes, 42);
    CHECK_SET(&d.server.set, tree);
    drive_done(&d);
}

/* A server that refuses is asked once; when one of several fails, the others' answers are waited
 * for and no further one is asked. */
static void test_failure_among_several(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *tree = wide_tree(40);
    setup(&d, "", tree, &wanted, &plan);
    d.server.fault = FAULT_403;
    d.server.fault_at = 1;
    start(&d, &plan);
    while (hypernode_server_answer(&d.server)) {
    }
    CHECK_INT(d.outcome, WEFT_APPLY_REFUSED);
    CHECK_INT(d.server.writes, 1);

    d.server.fault_at = 1 + 12; /* by then 8 are under way */
    start(&d, &plan);
    for (size_t i = 0; i < 12; i++) {
        CHECK(!d.done);
        CHECK(hypernode_server_answer(&d.server));
    }
    CHECK_INT(d.server.under_way, WEFT_APPLY_FLIGHTS - 1);
    while (hypernode_server_answer(&d.server)) {
        CHECK(d.done == (d.server.under_way == 0));
    }
    CHECK_INT(d.outcome, WEFT_APPLY_REFUSED);
    CHECK_INT(d.confirmed, 12 - 1 + WEFT_APPLY_FLIGHTS - 1);
    CHECK_INT(d.server.performed, d.confirmed);
    drive(&d, &wanted);
    CHECK_SET(&d.server.set, tree);
    drive_done(&d);
}

/* It is told to stop while several are under way: their answers are taken, none is lost. */
static void test_stop_among_several(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *tree = wide_tree(40);
    setup(&d, "", tree, &wanted, &plan);
    start(&d, &plan);
    for (size_t i = 0; i < 10; i++) {
        CHECK(hypernode_server_answer(&d.server));
    }
    /* a watch may show each of them before its answer comes */
    size_t expected = 0;
    for (size_t i = 0; i < wanted.count; i++) {
        expected += weft_apply_expects(d.apply, &wanted.items[i]);
    }
    CHECK_INT(expected, WEFT_APPLY_FLIGHTS);
    weft_apply_stop(d.apply);
    while (hypernode_server_answer(&d.server)) {
    }
    CHECK_INT(d.outcome, WEFT_APPLY_STOPPED);
    CHECK_INT(d.confirmed, 10 + WEFT_APPLY_FLIGHTS);
    CHECK_INT(d.view.count, d.confirmed);
    drive_done(&d);
}

static void test_missing_crd(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, "", "a 1 n0 n1\n", &wanted, &plan);
    d.server.fault = FAULT_NO_CRD;
    d.server.fault_at = 1;
    start(&d, &plan);
    CHECK(hypernode_server_answer(&d.server));
    CHECK_INT(d.outcome, WEFT_APPLY_MISSING);
    drive_done(&d);
}

static void test_retry_after_is_handed_on(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, "", "a 1 n0 n1\n", &wanted, &plan);
    d.server.fault = FAULT_429;
    d.server.fault_at = 1;
    start(&d, &plan);
    CHECK(hypernode_server_answer(&d.server));
    CHECK_INT(d.outcome, WEFT_APPLY_RETRY);
    CHECK_INT(d.retry_after, 7000000000);
    CHECK_INT(d.error.domain_code, 429);
    drive_done(&d);
}

static void test_expects(void)
{
    struct drive d;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, MOVE_FROM, MOVE_TO, &wanted, &plan);
    start(&d, &plan);
    /* under way: the release of n1 */
    CHECK(weft_apply_expects(d.apply, weft_hypernode_set_get(&wanted, "a")));
    CHECK(!weft_apply_expects(d.apply, weft_hypernode_set_get(&d.view, "a")));
    CHECK(!weft_apply_expects(d.apply, weft_hypernode_set_get(&wanted, "b")));
    CHECK(!weft_apply_expects_gone(d.apply, "a")); /* it is no delete */
    drive_done(&d);
}

/* What others put on an object survives our writes. */
static void test_others(void)
{
    struct drive d;
    static const char others[] =
        "{\"labels\":{\"team\":\"a\"},\"annotations\":{\"note\":\"x\"},"
        "\"finalizers\":[\"example.com/hold\"],"
        "\"ownerReferences\":[{\"kind\":\"X\",\"uid\":\"u\",\"controller\":true}]}";
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    setup(&d, MOVE_FROM, MOVE_TO, &wanted, &plan);
    weft_free(d.server.set.items[0].others);
    d.server.set.items[0].others = weft_strdup(others);
    drive(&d, &wanted); /* the server checks what a PUT carries */
    CHECK_SET(&d.server.set, MOVE_TO);
    CHECK_STR(d.server.set.items[0].others, others);
    drive_done(&d);
}

static void test_without_memory(void)
{
    for (uint64_t n = 1; n < 60; n++) {
        struct drive d;
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
        struct weft_hypernode_set live = {0};
        hypernodes_read(&live, MOVE_FROM);
        hypernodes_read(&wanted, MOVE_TO);
        drive_init(&d, &live);
        d.server.fail_allocation = n;
        list(&d);
        (void)one_round(&d, &wanted);
        d.server.fail_allocation = 0;
        drive(&d, &wanted);
        CHECK_SET(&d.server.set, MOVE_TO);
        CHECK(d.server.worst <= WEFT_MODEL_LOOSE);
        weft_hypernode_set_done(&live);
        drive_done(&d);
    }
}

WEFT_SUITE(apply, {"every fault at every write", test_every_fault_at_every_write},
           {"killed after every write", test_killed_after_every_write},
           {"gate and stop", test_gate_and_stop},
           {"stop waits for the answer", test_stop_waits_for_the_answer},
           {"no delete of what is listed", test_no_delete_of_what_is_listed},
           {"creates together", test_creates_together},
           {"failure among several", test_failure_among_several},
           {"stop among several", test_stop_among_several}, {"missing CRD", test_missing_crd},
           {"Retry-After is handed on", test_retry_after_is_handed_on}, {"expects", test_expects},
           {"others", test_others}, {"without memory", test_without_memory})
