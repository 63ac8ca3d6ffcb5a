/* SPDX-License-Identifier: Apache-2.0 */
/* Pods to placements of gangs: what is expected is read off the texts. */
#include "pkg/hypernode/pods.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "tests/unit/unit.h"

static int parse(const char *text, struct weft_pods *pods, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_pods_parse(text, strlen(text), "p.json", pods, err);
}

/* "node gang" a line. */
static void check(const char *text, const char *expected)
{
    weft_auto(weft_pods_done) struct weft_pods pods = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_error err;
    weft_buf_init(&buf, 4096);
    CHECK_INT(parse(text, &pods, &err), 0);
    CHECK_STR(err.message, "");
    for (size_t i = 0; i < pods.count; i++) {
        (void)weft_buf_printf(&buf, "%s %s\n", pods.items[i].node, pods.items[i].gang);
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

/* A pod of namespace ml on node n1 with more members of metadata. */
#define POD(meta) "{\"metadata\":{\"namespace\":\"ml\"" meta "},\"spec\":{\"nodeName\":\"n1\"}}"
#define LIST(items) "{\"apiVersion\":\"v1\",\"items\":[" items "],\"kind\":\"List\"}"
#define OWNER(kind)                                                                                \
    ",\"ownerReferences\":[{\"kind\":\"X\",\"name\":\"x\"},{\"kind\":\"" kind                      \
    "\",\"name\":\"o\",\"controller\":true}]"

static void what_tells_a_gang(void)
{
    check(LIST(POD(",\"annotations\":{\"scheduling.k8s.io/group-name\":\"pg\"},"
                   "\"labels\":{\"volcano.sh/job-name\":\"j\"}")),
          "n1 ml/pg\n");
    check(LIST(POD(",\"labels\":{\"volcano.sh/job-name\":\"j\"}" OWNER("Job"))), "n1 ml/j\n");
    check(LIST(POD(",\"annotations\":{\"volcano.sh/job-name\":\"j\"}")), "n1 ml/j\n");
    check(LIST(POD(OWNER("PyTorchJob"))), "n1 ml/PyTorchJob/o\n");
    check(LIST(POD(OWNER("DaemonSet")) "," POD(OWNER("ReplicaSet")) "," POD(OWNER("Node"))), "");
    check(LIST(POD("")), "");
    check(LIST(POD(",\"annotations\":null,\"labels\":{},\"ownerReferences\":[]")), "");
}

/* A node that is only nominated is no place; a pod that ended holds none. */
static void who_holds_a_place(void)
{
    static const char text[] =
        LIST("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\","
             "\"labels\":{\"volcano.sh/job-name\":\"waits\"}},"
             "\"spec\":{},\"status\":{\"nominatedNodeName\":\"n1\",\"phase\":\"Pending\"}},"
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\","
             "\"labels\":{\"volcano.sh/job-name\":\"starts\"}},"
             "\"spec\":{\"nodeName\":\"n2\"},\"status\":{\"phase\":\"Pending\"}},"
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\","
             "\"labels\":{\"volcano.sh/job-name\":\"runs\"}},"
             "\"spec\":{\"nodeName\":\"n3\"},\"status\":{\"phase\":\"Running\"}},"
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\","
             "\"labels\":{\"volcano.sh/job-name\":\"done\"}},"
             "\"spec\":{\"nodeName\":\"n4\"},\"status\":{\"phase\":\"Succeeded\"}},"
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\","
             "\"labels\":{\"volcano.sh/job-name\":\"died\"}},"
             "\"spec\":{\"nodeName\":\"n5\"},\"status\":{\"phase\":\"Failed\"}}");
    check(text, "n2 a/starts\nn3 a/runs\n");
}

static void one_job_in_two_namespaces_is_two_gangs(void)
{
    check(LIST("{\"metadata\":{\"namespace\":\"a\",\"labels\":{\"volcano.sh/job-name\":\"j\"}},"
               "\"spec\":{\"nodeName\":\"n1\"}},"
               "{\"metadata\":{\"labels\":{\"volcano.sh/job-name\":\"j\"}},"
               "\"spec\":{\"nodeName\":\"n1\"}}"),
          "n1 a/j\nn1 default/j\n");
}

static void what_is_wrong_is_named(void)
{
    static const struct {
        const char *text;
        const char *message;
    } wrong[] = {
        {"{\"items\": [\n  " POD("") ",\n  {\"metadata\": {},\n   \"spec\": {\"nodeName\": 5}}]}",
         "p.json:4: spec.nodeName: is an integer (5), a string is expected"},
        {LIST("\n" POD(",\"labels\":{\"volcano.sh/job-name\":true}")),
         "p.json:2: metadata.labels.volcano.sh/job-name: is a boolean (true), "
         "a string is expected"},
        {"{\"items\": [\n{\n\n\"metadata\": nil}]}", "p.json:4: no JSON here: \"nil}\""},
        {LIST("{\"metadata\":{}}"), "p.json:1: a pod without metadata or spec"},
        {LIST("{\"kind\":\"Node\",\"metadata\":{},\"spec\":{}}"),
         "p.json:1: kind: is Node, Pod is expected"},
        {LIST(POD(",\"ownerReferences\":[7]")),
         "p.json:1: metadata.ownerReferences[0]: is an integer, an object is "
         "expected"},
        {"{\"items\":[]}", "p.json: no Pod in it; expected is what `kubectl get pods -A -o json` "
                           "prints"},
        {POD(""), "p.json: no Pod in it; expected is what `kubectl get pods -A -o json` prints"},
        {"NAME READY\n", "p.json:1: byte 0: an object was expected; expected is what `kubectl get "
                         "pods -A -o json` prints"},
        {"", "p.json:0: byte 0: the stream is cut short; expected is what `kubectl get pods -A -o "
             "json` "
             "prints"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(wrong); i++) {
        weft_auto(weft_pods_done) struct weft_pods pods = {0};
        struct weft_error err;
        CHECK_INT(parse(wrong[i].text, &pods, &err), -EINVAL);
        CHECK_STR(err.message, wrong[i].message);
        CHECK(pods.items == NULL && pods.texts == NULL);
    }
}

/* Half a file is no list: every cut of it is refused. */
static void half_a_file_is_refused(void)
{
    static const char text[] = "{\n\"items\": [\n" POD(OWNER("Job")) ",\n" POD(OWNER("Job")) "]\n}";
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        weft_auto(weft_pods_done) struct weft_pods pods = {0};
        struct weft_error err = {0};
        CHECK_INT(weft_pods_parse(text, len, "p.json", &pods, &err), -EINVAL);
        CHECK_CONTAINS(err.message, "p.json");
    }
    check(text, "n1 ml/Job/o\nn1 ml/Job/o\n");
}

static void too_much_is_refused(void)
{
    weft_auto(weft_pods_done) struct weft_pods pods = {0};
    struct weft_error err = {0};
    /* the length is looked at before the text */
    CHECK_INT(weft_pods_parse("{", (size_t)WEFT_PODS_TEXT_MAX + 1, "p.json", &pods, &err), -EFBIG);
    CHECK_STR(err.message, "p.json: larger than 512 MiB");

    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, (size_t)WEFT_PODS_ITEM_MAX + 64);
    CHECK_INT(weft_buf_append(&buf, "{\"items\":[\n{\"a\":\"", 17), 0);
    static char pad[1 << 20];
    memset(pad, 'x', sizeof(pad));
    for (int i = 0; i < WEFT_PODS_ITEM_MAX >> 20; i++) {
        CHECK_INT(weft_buf_append(&buf, pad, sizeof(pad)), 0);
    }
    CHECK_INT(weft_buf_append(&buf, "\"}]}", 4), 0);
    CHECK_INT(weft_pods_parse(weft_buf_text(&buf), buf.len, "p.json", &pods, &err), -EFBIG);
    CHECK_CONTAINS(err.message, "p.json:2: byte ");
}

static void no_memory(void)
{
    static const char text[] =
        LIST(POD(OWNER("Job")) "," POD(",\"labels\":{\"volcano.sh/job-name\":"
                                       "\"j\"}"));
    int rc = -ENOMEM;
    uint64_t nth = 1;
    for (; rc < 0 && nth < 5000; nth++) {
        weft_auto(weft_pods_done) struct weft_pods pods = {0};
        struct weft_error err;
        (void)weft_mem_fail_after(nth);
        rc = parse(text, &pods, &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && pods.items == NULL && err.message[0] != '\0'));
    }
    CHECK_INT(rc, 0);
    CHECK(nth > 10);
}

WEFT_SUITE(pods, {"what_tells_a_gang", what_tells_a_gang}, {"who_holds_a_place", who_holds_a_place},
           {"one_job_in_two_namespaces_is_two_gangs", one_job_in_two_namespaces_is_two_gangs},
           {"what_is_wrong_is_named", what_is_wrong_is_named},
           {"half_a_file_is_refused", half_a_file_is_refused},
           {"too_much_is_refused", too_much_is_refused}, {"no_memory", no_memory})
