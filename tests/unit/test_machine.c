/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as a value, and weft's own JSON form of it. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

static struct weft_machine *load(const char *fixture)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (weft_machine_load(weft_fixture(fixture), &m, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        CU_FAIL("fixture cannot be read");
    }
    return m;
}

static struct weft_machine *parse(const char *text, struct weft_error *err)
{
    struct weft_machine *m = NULL;
    *err = (struct weft_error){0};
    const int rc = weft_machine_read(text, strlen(text), "t", &m, err);
    CHECK((rc == 0) == (m != NULL));
    CHECK(rc == 0 || err->message[0] != '\0');
    return m;
}

static void reads_the_hgx_machine(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = load("machine/hgx-h100-8.json");
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->device_count, 8);
    CHECK_INT(m->nic_count, 8);
    CHECK_STR(m->vendor, "nvidia");
    CHECK_INT(m->common_node_count, 3);
    CHECK_STR(m->common_nodes[0], "/dev/nvidiactl");
    CHECK_INT(m->warning_count, 0);
    const struct weft_device *d = &m->devices[5];
    CHECK_STR(d->id, "GPU-b0b8d33d-c7e7-46f7-aa38-6d51c5a55203");
    CHECK_INT(d->index, 5);
    CHECK_STR(d->model, "NVIDIA H100 80GB HBM3");
    CHECK_INT(d->bdf.bus, 0x9e);
    CHECK_INT(d->numa_node, 1);
    CHECK_STR(d->numa_label, "1");
    CHECK_INT(d->numa_group, 1);
    CHECK_INT(d->socket, 1);
    CHECK_INT(d->parent, -1);
    CHECK_INT(d->node_count, 1);
    CHECK_STR(d->nodes[0], "/dev/nvidia5");
    CHECK_INT(weft_machine_b(m, 2, 7), 450000);
    CHECK_INT(weft_machine_t(m, 4, 5), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 5, 6), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 7), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 5, 5), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_n(m, 5, 4), WEFT_DISTANCE_PXB);
    CHECK_STR(m->nics[7].name, "mlx5_7");
    CHECK_INT(m->nics[7].numa_node, 1);
}

static void finds_by_id_and_index(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = load("machine/pairs8.json");
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_find(m, m->devices[6].id), 6);
    CHECK_INT(weft_machine_find(m, "3"), 3);
    CHECK_INT(weft_machine_find(m, "GPU3"), 3);
    CHECK(weft_machine_find(m, "8") == SIZE_MAX);
    CHECK(weft_machine_find(m, "") == SIZE_MAX);
    CHECK(weft_machine_find(m, "GPU") == SIZE_MAX);
    CHECK(weft_machine_find(m, "-1") == SIZE_MAX);

    /* an id that looks like another's index wins */
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *odd =
        parse("{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"index\":1},"
              "{\"id\":\"1\",\"index\":0}]}",
              &err);
    if (odd != NULL) {
        CHECK_INT(weft_machine_find(odd, "1"), 1);
        CHECK_INT(weft_machine_find(odd, "GPU1"), 0);
    }
}

static void round_trip(const char *fixture)
{
    weft_auto(weft_machine_free) struct weft_machine *m = load(fixture);
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_error err = {0};
    weft_buf_init(&buf, 1U << 20);
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_write_json(m, &buf), 0);
    CHECK_INT(weft_machine_read(buf.data, buf.len, "again", &again, &err), 0);
    CHECK_STR(err.message, "");
    CHECK(again != NULL && weft_machine_equal(m, again));
    CHECK(again == NULL || again->warning_count == m->warning_count);
    if (again != NULL && again->device_count > 0) {
        again->devices[0].healthy = !again->devices[0].healthy;
        CHECK(!weft_machine_equal(m, again));
    }
}

static void check_nics(const struct weft_machine *m)
{
    CHECK_STR(m->nics[0].netdev, "ibp3s0");
    CHECK_INT(m->nics[0].layer, WEFT_NIC_LAYER_INFINIBAND);
    CHECK_INT(m->nics[0].rate_mbps, 400000);
    CHECK_INT(m->nics[0].up, 1);
    CHECK(m->nics[0].guid == UINT64_C(0x506b4b0300c3f0aa));
    CHECK_INT(m->nics[1].layer, WEFT_NIC_LAYER_ETHERNET);
    CHECK_INT(m->nics[1].up, 0);
    CHECK_INT(m->nics[2].layer, WEFT_NIC_LAYER_UNKNOWN);
    CHECK_INT(m->nics[2].up, -1);
    CHECK_INT(m->nics[2].guid, 0);
}

static void reads_every_field(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = load("machine/every-field.json");
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->driver_version, "570.133.20");
    CHECK_STR(m->runtime_version, "12.8");
    CHECK_STR(m->clique, "b2f0c1d4-6a3e-4d0f-9d55-0c6f5a1e7b90.7");
    CHECK(m->partial);
    const struct weft_device *d = &m->devices[0];
    CHECK(!d->healthy);
    CHECK_INT(d->state, WEFT_DEVICE_RECOVERING);
    CHECK_STR(d->health_reason, "XID 79: the GPU has fallen off the bus");
    CHECK_STR(d->capability, "10.0");
    CHECK_STR(d->clique, m->clique);
    CHECK_INT(d->memory_mib, 189471);
    CHECK_INT(d->links_up, 17);
    CHECK_INT(d->links_total, 18);
    CHECK_INT(d->pcie.generation, 1);
    CHECK_INT(d->pcie.width, 8);
    CHECK_INT(d->pcie.max_generation, 5);
    CHECK_INT(d->pcie.max_width, 16);
    CHECK_INT(d->pci_class, 0x030200);
    CHECK(d->partitionable);
    CHECK_INT(d->slices.gpu, 0);
    CHECK_INT(d->mount_count, 1);
    d = &m->devices[1];
    CHECK(d->healthy);
    CHECK_STR(d->health_reason, "");
    CHECK_STR(d->profile, "1g.24gb");
    const struct weft_slices *slices = &d->slices;
    CHECK_INT(slices->gpu, 1);
    CHECK_INT(slices->compute, 2);
    CHECK_INT(slices->multiprocessors, 18);
    CHECK_INT(slices->copy, 3);
    CHECK_INT(slices->decoders, 4);
    CHECK_INT(slices->encoders, 5);
    CHECK_INT(slices->jpegs, 6);
    CHECK_INT(slices->ofas, 7);
    CHECK(!d->partitionable);
    CHECK_INT(m->parent_count, 1);
    CHECK_INT(m->parents[0].index, 1);
    CHECK_STR(m->parents[0].model, "NVIDIA GB300");
    CHECK_STR(m->parents[0].capability, "10.3");
    CHECK_INT(m->parents[0].memory_mib, 284208);
    CHECK_INT(m->parents[0].pci_class, 0x030000);
    CHECK_INT(d->links_up, -1);
    CHECK_INT(d->links_total, -1);
    CHECK_INT(d->memory_mib, 0);
    CHECK_INT(d->pcie.width, 0);
    check_nics(m);
}

/* A word of the file and another for it: each makes another machine. */
static void every_field_counts(void)
{
    static const char *const changes[][2] = {
        {"570.133.20", "570.133.21"},
        {"\"12.8\"", "\"12.9\""},
        {"90.7\",\n  \"partial", "90.8\",\n  \"partial"},
        {"\"partial\": true", "\"partial\": false"},
        {"\"recovering\"", "\"unhealthy\""},
        {"XID 79", "XID 74"},
        {"\"10.0\"", "\"9.0\""},
        {"90.7\", \"memory", "90.8\", \"memory"},
        {"189471", "189472"},
        {"\"links_up\": 17", "\"links_up\": 16"},
        {"\"links_total\": 18", "\"links_total\": 36"},
        {"\"generation\": 1", "\"generation\": 5"},
        {"\"width\": 8", "\"width\": 16"},
        {"\"max_generation\": 5", "\"max_generation\": 6"},
        {"\"max_width\": 16}, \"pci_class", "\"max_width\": 8}, \"pci_class"},
        {"0x030200", "0x030000"},
        {"\"partitionable\": true", "\"partitionable\": false"},
        {"\"gpu\": 1", "\"gpu\": 2"},
        {"\"ofas\": 7", "\"ofas\": 8"},
        {"\"index\": 1, \"model", "\"index\": 2, \"model"},
        {"GB300", "GB400"},
        {"10.3", "10.4"},
        {"284208", "284209"},
        {"0x030000", "0x030200"},
        {"pci-0000:1b:00.0-card", "pci-0000:1b:00.0-render"},
        {"1g.24gb", "2g.48gb"},
        {"ibp3s0", "ibp3s1"},
        {"\"layer\": \"infiniband\"", "\"layer\": \"ethernet\""},
        {"400000", "200000"},
        {"\"up\": true", "\"up\": false"},
        {"0x506b4b0300c3f0aa", "0x506b4b0300c3f0ab"},
    };
    size_t len = 0;
    weft_autofree char *text = weft_fixture_text("machine/every-field.json", &len);
    weft_auto(weft_machine_free) struct weft_machine *m = load("machine/every-field.json");
    for (size_t i = 0; text != NULL && m != NULL && i < WEFT_ARRAY_LEN(changes); i++) {
        const char *at = strstr(text, changes[i][0]);
        CHECK(at != NULL);
        if (at == NULL) {
            (void)fprintf(stderr, "not in the file: %s\n", changes[i][0]);
            continue;
        }
        weft_autofree char *other = weft_asprintf("%.*s%s%s", (int)(at - text), text, changes[i][1],
                                                  at + strlen(changes[i][0]));
        struct weft_error err;
        weft_auto(weft_machine_free) struct weft_machine *changed = parse(other, &err);
        CHECK_STR(err.message, "");
        const bool differs = changed != NULL && !weft_machine_equal(m, changed);
        CHECK(differs);
        if (!differs) {
            (void)fprintf(stderr, "makes no difference: %s\n", changes[i][1]);
        }
    }
}

/* A state and "healthy" that contradict each other are no state. */
static void states_agree_with_health(void)
{
    static const struct {
        const char *healthy, *state;
        int expected; /* enum weft_device_state, -1: refused */
    } rows[] = {
        {"true", "healthy", WEFT_DEVICE_PLAIN},
        {"true", "suspect", WEFT_DEVICE_SUSPECT},
        {"true", "unhealthy", -1},
        {"true", "recovering", -1},
        {"false", "unhealthy", WEFT_DEVICE_PLAIN},
        {"false", "recovering", WEFT_DEVICE_RECOVERING},
        {"false", "suspect", -1},
        {"false", "healthy", -1},
        {"true", "tired", -1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err;
        weft_autofree char *text =
            weft_asprintf("{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"healthy\":%s,"
                          "\"state\":\"%s\"}]}",
                          rows[i].healthy, rows[i].state);
        weft_auto(weft_machine_free) struct weft_machine *m = parse(text, &err);
        if (rows[i].expected < 0) {
            CHECK(m == NULL);
            CHECK_CONTAINS(err.message, "is no state of");
        } else if (m != NULL) {
            CHECK_INT(m->devices[0].state, rows[i].expected);
            CHECK_STR(weft_device_state_name(&m->devices[0]), rows[i].state);
        } else {
            CHECK_STR(err.message, "");
        }
    }
}

static void writes_what_it_reads(void)
{
    round_trip("machine/every-field.json");
    round_trip("machine/hgx-h100-8.json");
    round_trip("machine/pairs8.json");
}

/* The least a file may say, and what follows from silence. */
static void fills_in_what_is_unknown(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\xef\xbb\xbf {\"weft_machine\":1,\"devices\":["
              "{\"id\":\"a\",\"numa_node\":0},{\"id\":\"b\",\"numa\":\"0\"},{\"id\":\"c\",\"numa\":"
              "\"0,3-9\"},"
              "{\"id\":\"d\"}],\"nics\":[{\"name\":\"n\",\"numa_node\":0}]}",
              &err);
    CHECK_STR(err.message, "");
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->devices[1].numa_node, 0);
    CHECK_INT(m->devices[1].numa_group, m->devices[0].numa_group);
    CHECK_INT(m->devices[2].numa_node, -1); /* a label that is no node's number */
    CHECK_INT(m->devices[2].numa_group, 1);
    CHECK_INT(m->devices[3].numa_group, -1);
    CHECK_INT(m->devices[3].index, 3);
    CHECK(m->devices[3].healthy);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE); /* known and equal */
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_t(m, 3, 2), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_b(m, 0, 1), 0);
    CHECK_INT(weft_machine_n(m, 1, 0), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_n(m, 3, 0), WEFT_DISTANCE_SYS);
}

static void joins_two_readings_of_a_pair(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"},{\"id\":\"b\"},{\"id\":\"c\"}],"
              "\"bandwidth\":[[0,50000,7],[25000,0,0],[7,0,0]],"
              "\"distance\":[[null,\"PIX\",\"PHB\"],[\"PXB\",null,null],[\"PHB\",\"PIX\",null]]}",
              &err);
    CHECK_STR(err.message, "");
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_b(m, 0, 1), 25000);
    CHECK_INT(weft_machine_b(m, 1, 0), 25000);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 1, 0), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_SYS); /* one side unknown: the larger */
    CHECK_INT(m->warning_count, 2);
    CHECK_CONTAINS(m->warnings[0], "a and b");
}

struct bad {
    const char *text, *message;
};

static void all_are_refused(const struct bad *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_error err;
        weft_auto(weft_machine_free) struct weft_machine *m = parse(cases[i].text, &err);
        CHECK(m == NULL);
        if (m != NULL) {
            (void)fprintf(stderr, "was read: %s\n", cases[i].text);
        }
        CHECK_CONTAINS(err.message, cases[i].message);
    }
}

static void refuses_with_the_place(void)
{
    static const struct bad cases[] = {
        {"", "t: the file is empty"},
        {"{}", "no \"weft_machine\""},
        {"{\"weft_machine\":2,\"devices\":[]}", "weft_machine"},
        {"{\"weft_machine\":1}", "no \"devices\""},
        {"{\"weft_machine\":1,\"devices\":{}}", "devices"},
        {"{\"weft_machine\":1,\"devices\":[],\"deviecs\":1}", "deviecs"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"uuid\":\"x\"}]}", "devices[0].uuid"},
        {"{\"weft_machine\":1,\"devices\":[{\"index\":1}]}", "devices[0]"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a,b\"}]}", "no comma"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"},{\"id\":\"a\",\"index\":7}]}",
         "two devices have the id a"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"},{\"id\":\"b\",\"index\":0}]}",
         "two devices have index 0"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"bdf\":\"1b:00.0\"}]}", "devices[0].bdf"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"bdf\":\"0000:1b:20.0\"}]}",
         "no PCI address"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"nodes\":[\"dev/nvidia0\"]}]}",
         "absolute path"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"mounts\":[\"\"]}]}",
         "devices[0].mounts[0]: needs an absolute path"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"numa_node\":\"0\"}]}", "numa_node"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"socket\":-2}]}", "socket"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"}],\"bandwidth\":[]}", "0 rows"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"}],\"bandwidth\":[[0,1]]}", "1 cells"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"},{\"id\":\"b\"}],"
         "\"bandwidth\":[[0,-1],[0,0]]}",
         "bandwidth[0][1]"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\"},{\"id\":\"b\"}],"
         "\"distance\":[[null,\"NEAR\"],[null,null]]}",
         "distance[0][1]"},
        {"{\"weft_machine\":1,\"devices\":[],\"nics\":[{\"bdf\":\"0000:1b:00.0\"}]}", "nics[0]"},
        {"{\"weft_machine\":1,\"devices\":[}", "t:1"},
        {"hello world\n", "(no header line that begins with GPU0), nor any other recording"},
    };
    all_are_refused(cases, WEFT_ARRAY_LEN(cases));
}

static void refuses_bad_states(void)
{
    static const struct bad cases[] = {
        {"{\"weft_machine\":1,\"devices\":[],\"partial\":1}", "partial"},
        {"{\"weft_machine\":1,\"devices\":[],\"clique\":7}", "clique"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"links_up\":19,\"links_total\":18}]}",
         "is 19, of 18 links"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"links_up\":-2}]}", "links_up"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"memory_mib\":-1}]}", "memory_mib"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"pcie\":{\"width\":256}}]}",
         "devices[0].pcie.width"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"pcie\":{\"lanes\":4}}]}",
         "devices[0].pcie.lanes"},
        {"{\"weft_machine\":1,\"devices\":[{\"id\":\"a\",\"profile\":"
         "\"0123456789012345678901234567890123456789\"}]}",
         "longer than 31 bytes"},
        {"{\"weft_machine\":1,\"devices\":[],\"nics\":[{\"name\":\"n\",\"layer\":\"ib\"}]}",
         "neither infiniband nor ethernet"},
        {"{\"weft_machine\":1,\"devices\":[],\"nics\":[{\"name\":\"n\",\"guid\":\"mlx\"}]}",
         "is no GUID"},
        {"{\"weft_machine\":1,\"devices\":[],\"nics\":[{\"name\":\"n\",\"up\":\"yes\"}]}", "up"},
    };
    all_are_refused(cases, WEFT_ARRAY_LEN(cases));
}

static void a_node_without_devices_is_fine(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("{\"weft_machine\": 1, \"devices\": []}", &err);
    CHECK(m != NULL && m->device_count == 0);
}

static void too_large_a_machine_is_refused(void)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_machine_new("t", WEFT_MACHINE_DEVICES_MAX + 1, 0, &m, &err), -EFBIG);
    CHECK_INT(weft_machine_new("t", 1, WEFT_MACHINE_NICS_MAX + 1, &m, &err), -EFBIG);
    CHECK(m == NULL);
    CHECK_CONTAINS(err.message, "at most");
}

static void warnings_are_capped_and_printable(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("t", 0, 0, &m, NULL), 0);
    for (int i = 0; m != NULL && i < 100; i++) {
        CHECK_INT(weft_machine_warn(m, "%d \x1b\xff", i), 0);
    }
    CHECK(m != NULL && m->warning_count == WEFT_MACHINE_WARNINGS_MAX);
    if (m != NULL) {
        CHECK_STR(m->warnings[0], "0 ??");
        CHECK_CONTAINS(m->warnings[WEFT_MACHINE_WARNINGS_MAX - 1], "left out");
    }
}

static void bdf_texts(void)
{
    struct weft_bdf bdf;
    char text[WEFT_BDF_TEXT_MAX];
    CHECK_INT(weft_bdf_parse("00000000:1B:00.0", &bdf), 0); /* nvidia-smi's form */
    CHECK_STR(weft_bdf_format(&bdf, text), "0000:1b:00.0");
    CHECK_INT(weft_bdf_parse("ffffffff:ff:1f.7", &bdf), 0);
    CHECK_STR(weft_bdf_format(&bdf, text), "ffffffff:ff:1f.7");
    static const char *const bad[] = {"",        "0000",         "0000:1b",      "0000:1b:00",
                                      "1b:00.0", "0000:100:0.0", "0000:00:00.8", "0000:00:20.0",
                                      "::.",     "0x00:00:00.0", "0:0:0.0 "};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK_INT(weft_bdf_parse(bad[i], &bdf), -EINVAL);
    }
    bdf.known = false;
    CHECK_STR(weft_bdf_format(&bdf, text), "");
}

/* Every allocation of a read and a write fails once; nothing leaks (the sanitizer build sees to
 * that) and the error says memory. */
static void fail_allocations_of(const char *fixture)
{
    size_t len = 0;
    weft_autofree char *text = weft_fixture_text(fixture, &len);
    bool done = text == NULL;
    for (uint64_t nth = 1; !done && nth < 5000; nth++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        weft_auto(weft_buf_done) struct weft_buf buf;
        struct weft_error err = {0};
        weft_buf_init(&buf, 1U << 20);
        (void)weft_mem_fail_after(nth);
        int rc = weft_machine_read(text, len, "t", &m, &err);
        rc = rc == 0 ? weft_machine_write_json(m, &buf) : rc;
        (void)weft_mem_fail_after(0);
        done = rc == 0;
        CHECK(done || rc == -ENOMEM);
    }
    CHECK(done);
}

static void failing_allocations(void)
{
    fail_allocations_of("machine/hgx-h100-8.json");
    fail_allocations_of("machine/every-field.json");
}

WEFT_SUITE(machine, {"reads the HGX machine", reads_the_hgx_machine},
           {"finds by id and index", finds_by_id_and_index},
           {"reads every field", reads_every_field}, {"every field counts", every_field_counts},
           {"states agree with health", states_agree_with_health},
           {"writes what it reads", writes_what_it_reads},
           {"fills in what is unknown", fills_in_what_is_unknown},
           {"joins two readings of a pair", joins_two_readings_of_a_pair},
           {"refuses with the place", refuses_with_the_place},
           {"refuses bad states", refuses_bad_states},
           {"a node without devices is fine", a_node_without_devices_is_fine},
           {"too large a machine is refused", too_large_a_machine_is_refused},
           {"warnings are capped and printable", warnings_are_capped_and_printable},
           {"PCI addresses", bdf_texts}, {"failing allocations", failing_allocations})
