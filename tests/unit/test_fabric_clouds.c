/* SPDX-License-Identifier: Apache-2.0 */
/* Clouds' topology answers: AWS instance topology, OCI hosts. */
#include <errno.h>

#include "pkg/fabric/cloud.h"
#include "pkg/fabric/labels.h"
#include "tests/unit/declared_text.h"
#include "tests/unit/unit.h"

static struct weft_declared *aws(const char *text, struct weft_error *err)
{
    struct weft_declared *declared = NULL;
    const int rc = weft_parse_aws_topology(text, strlen(text), "aws.json", NULL, &declared, err);
    CHECK_INT(rc < 0, declared == NULL);
    return declared;
}

static struct weft_declared *oci(const char *text, const char *host, struct weft_error *err)
{
    struct weft_declared *declared = NULL;
    const struct weft_cloud_options options = {.host = host};
    const int rc = weft_parse_oci(text, strlen(text), "oci.json", &options, &declared, err);
    CHECK_INT(rc < 0, declared == NULL);
    return declared;
}

#define PAGE_1                                                                                     \
    "{\"Instances\": [{\"InstanceId\": \"i-b\", \"NetworkNodes\": [\"top\", \"mid\", \"low-2\"],"  \
    " \"CapacityBlockId\": \"null\"},\n"                                                           \
    "{\"NetworkNodes\": [\"top\", \"mid\", \"low-1\"], \"InstanceId\": \"i-a\"}],"                 \
    " \"NextToken\": \"t\"}\n"
#define PAGE_2                                                                                     \
    "{\"Instances\": [{\"InstanceId\": \"i-c\", \"NetworkNodes\": [\"t\", \"u\", \"v\", \"w\"]}]}"

static void aws_answers(void)
{
    struct weft_error err = {0};
    struct weft_declared *both = aws(PAGE_1 PAGE_2, &err);
    CHECK_STR(err.message, "");
    CHECK(both != NULL && !both->partial && both->names == WEFT_NAMES_INSTANCES);
    /* the last network node is the closest; a fourth one makes a fourth level */
    weft_declared_check(both, "leaf spine core super-core: i-a=low-1/mid/top/- "
                              "i-b=low-2/mid/top/- i-c=w/v/u/t");
    /* a page whose successor is not there is not all */
    struct weft_declared *first = aws(PAGE_1, &err);
    CHECK(first != NULL && first->partial);
    CHECK_STR(first != NULL && first->warning_count == 1 ? first->warnings[0] : "",
              "aws.json: the last page has a NextToken: there are more instances than in this "
              "file");
    weft_declared_check(first, "leaf spine core: i-a=low-1/mid/top i-b=low-2/mid/top");
}

static void aws_instances_without_a_place(void)
{
    struct weft_error err = {0};
    struct weft_declared *declared =
        aws("{\"Instances\": [{\"InstanceId\": \"i-a\", \"NetworkNodes\": [\"n\"]},\n"
            "{\"InstanceId\": \"i-b\", \"NetworkNodes\": null}, {\"InstanceId\": \"i-c\"}]}",
            &err);
    CHECK(declared != NULL && declared->partial);
    CHECK_STR(declared != NULL ? declared->warnings[0] : "",
              "aws.json:2: instance i-b has no NetworkNodes");
    weft_declared_check(declared, "leaf: i-a=n");
}

static void bad_aws_answers(void)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "aws.json: no instance with NetworkNodes"},
        {"{\"Instances\": []}", "aws.json: no instance with NetworkNodes"},
        {"{\"Regions\": []}", "aws.json: no list Instances"},
        {"{\"Instances\": [{\"NetworkNodes\": [\"a\"]}]}",
         "aws.json:1: Instances[0]: an instance without InstanceId"},
        {"{\"Instances\": [{\"InstanceId\": \"i\", \"NetworkNodes\": [\"a\", 2]}]}",
         "Instances[0].NetworkNodes[1]: a network node must be a string"},
        {"{\"Instances\": [{\"InstanceId\": \"i\", \"NetworkNodes\": \"a\"}]}",
         "Instances[0].NetworkNodes: is a string (a), a list is expected"},
        {"{\"Instances\":\n[{\"InstanceId\": \"i\"",
         "aws.json:2: byte 33: the stream is cut short"},
        {"\n\n<DescribeInstanceTopologyResponse/>", "aws.json:3: byte 2: an object was expected"},
        {PAGE_2 "\n{\"Instances\": [5]}", "aws.json page 2:1: Instances[0]: is an integer"},
        {"{\"Instances\": [{\"InstanceId\": \"i\", \"NetworkNodes\": [\"1\",\"2\",\"3\",\"4\","
         "\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\"]}]"
         "}",
         "17 network nodes; at most 16 are read"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err = {0};
        CHECK(aws(rows[i].text, &err) == NULL);
        CHECK_INT(err.code, -EINVAL);
        CHECK_CONTAINS(err.message, rows[i].part);
    }
}

static void oci_hosts(void)
{
    struct weft_error err = {0};
    struct weft_declared *own =
        oci("{\"customerHPCIslandId\": \"island\", \"customerHostId\": \"h\","
            " \"customerNetworkBlock\": \"net\", "
            "\"customerLocalBlock\": \"local\"}",
            "n1", &err);
    CHECK(own != NULL && own->names == WEFT_NAMES_HOSTS);
    weft_declared_check(own, "leaf spine core: n1=local/net/island");
    weft_declared_check(
        oci("{\"id\": \"x\", \"rdmaTopologyData\": {\"customerLocalBlock\": \"l\"}}", "n1", &err),
        "leaf spine core: n1=l/-/-");
    weft_declared_check(oci("{\"networkBlockId\": \"nb\", \"rackId\": \"r\"}", "n1", &err),
                        "leaf spine core: n1=-/nb/-");
    CHECK_STR(err.message, "");
    /* a shape without RDMA: nothing is known of it, which is not that it has left */
    struct weft_declared *none = oci("{\"code\": \"404\"}", "n1", &err);
    CHECK(none != NULL && none->partial && none->warning_count == 1);
    weft_declared_check(none, "leaf spine core:");
    CHECK(oci("[]", "n1", &err) == NULL);
    CHECK_CONTAINS(err.message, "not an answer of /opc/v2/host");
    CHECK(oci("{\"customerLocalBlock\": 7}", "n1", &err) == NULL);
    CHECK_CONTAINS(err.message, "oci.json:1: customerLocalBlock: is an integer (7)");
}

static void oci_lists(void)
{
    struct weft_error err = {0};
    struct weft_declared *api =
        oci("{\"items\": [{\"instanceId\": \"ocid1.b\", \"hpcIslandId\": \"i\", "
            "\"networkBlockId\": \"n\", \"localBlockId\": \"l2\"},\n"
            "{\"instanceId\": null, \"localBlockId\": \"l3\"},\n"
            "{\"instanceId\": \"ocid1.c\"},\n"
            "{\"instanceId\": \"ocid1.a\", \"hpcIslandId\": \"i\", \"localBlockId\": \"l1\"}]}",
            NULL, &err);
    CHECK(api != NULL && api->names == WEFT_NAMES_INSTANCES && api->partial);
    CHECK_STR(api != NULL ? api->warnings[0] : "",
              "oci.json:3: host ocid1.c has no local block, network block or island");
    weft_declared_check(api, "leaf spine core: ocid1.a=l1/-/i ocid1.b=l2/n/i");
    weft_declared_check(oci("{\"data\": {\"items\": [{\"instance-id\": \"o\", "
                            "\"hpc-island-id\": \"i\", \"local-block-id\": \"l\", "
                            "\"network-block-id\": \"n\"}]}}",
                            NULL, &err),
                        "leaf spine core: o=l/n/i");
    CHECK(oci("{\"customerLocalBlock\": \"l\"}", NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "an answer of one host needs the host's name");
    CHECK(oci("[]", NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "no host with a local block");
}

static void answers_join(void)
{
    struct weft_error err = {0};
    struct weft_declared *a = oci("{\"customerLocalBlock\": \"l1\"}", "n1", &err);
    struct weft_declared *b = oci("{\"customerLocalBlock\": \"l2\"}", "n2", &err);
    struct weft_declared *c = oci("{\"customerLocalBlock\": \"l0\"}", "n2", &err);
    struct weft_declared *other = aws(PAGE_2, &err);
    const struct weft_declared *const parts[] = {a, b, c, other};
    struct weft_declared *joined = NULL;
    CHECK_INT(weft_declared_join(parts, 3, "oci", &joined, &err), 0);
    /* n2 says two things: the first in order, whatever the order of the answers */
    CHECK_STR(joined != NULL && joined->warning_count == 1 ? joined->warnings[0] : "",
              "oci: node n2 is in l2 and in l0; weft keeps l0");
    weft_declared_check(joined, "leaf spine core: n1=l1/-/- n2=l0/-/-");
    joined = NULL;
    CHECK_INT(weft_declared_join(parts, 4, "oci", &joined, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "oci: aws.json has other levels or kinds of names than oci.json");
    CHECK_INT(weft_declared_join(parts, 0, "oci", &joined, &err), -EINVAL);
    CHECK(joined == NULL);
    weft_declared_free(a);
    weft_declared_free(b);
    weft_declared_free(c);
    weft_declared_free(other);
}

static int parse_nth(size_t which, struct weft_declared **ret, struct weft_error *err)
{
    static const char list[] = "{\"items\": [{\"instanceId\": \"o\", \"localBlockId\": \"l\"},"
                               "{\"instanceId\": \"p\"}]}";
    if (which == 0) {
        return weft_parse_aws_topology(PAGE_1 PAGE_2, strlen(PAGE_1 PAGE_2), "a", NULL, ret, err);
    }
    return weft_parse_oci(list, strlen(list), "o", NULL, ret, err);
}

static void no_memory(void)
{
    for (size_t which = 0; which < 2; which++) {
        int rc = -ENOMEM;
        uint64_t n = 0;
        while (rc < 0 && n < 100000) {
            struct weft_declared *declared = NULL;
            struct weft_error err = {0};
            (void)weft_mem_fail_after(++n);
            rc = parse_nth(which, &declared, &err);
            (void)weft_mem_fail_after(0);
            CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
            CHECK_INT(declared != NULL, rc == 0);
            weft_declared_free(declared);
        }
        CHECK_INT(rc, 0);
        CHECK(n > 20);
    }
}

WEFT_SUITE(fabric_clouds, {"aws_answers", aws_answers},
           {"aws_instances_without_a_place", aws_instances_without_a_place},
           {"bad_aws_answers", bad_aws_answers}, {"oci_hosts", oci_hosts}, {"oci_lists", oci_lists},
           {"answers_join", answers_join}, {"no_memory", no_memory})
