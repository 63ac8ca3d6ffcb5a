/* SPDX-License-Identifier: Apache-2.0 */
/* GPU feature labels. The expected files were written by hand from the rules of NVIDIA's GPU
 * feature discovery v0.20 (its internal/lm), not by weft. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/features.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/vgpu.h"
#include "pkg/base/buf.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

static struct weft_machine *machine_of(const char *text)
{
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_machine_read(text, strlen(text), "m.json", &machine, &err), 0);
    CHECK_STR(err.message, "");
    return machine;
}

static struct weft_machine *fixture_machine(const char *name)
{
    size_t len = 0;
    weft_autofree char *text = weft_fixture_text(name, &len);
    return text != NULL ? machine_of(text) : NULL;
}

/* All labels; the caller frees them. */
static char *labels_of(const struct weft_machine *machine, const struct weft_pool_settings *pools,
                       const char *machine_type)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    struct weft_error err = {0};
    const struct weft_feature_settings settings = {.pools = pools, .machine_type = machine_type};
    CHECK_INT(weft_features_build(machine, &settings, &buf, &err), 0);
    CHECK_STR(err.message, "");
    return weft_buf_steal(&buf);
}

static void expect_file(const struct weft_machine *machine, const struct weft_pool_settings *pools,
                        const char *machine_type, const char *fixture)
{
    weft_autofree char *expected = weft_fixture_text(fixture, NULL);
    weft_autofree char *labels = labels_of(machine, pools, machine_type);
    CHECK_STR(labels, expected);
}

/* These labels, each "key=value" without "nvidia.com/", are there; NULL ends them. */
static void expect(const struct weft_machine *machine, const struct weft_pool_settings *pools,
                   const char *const *lines)
{
    weft_autofree char *labels = labels_of(machine, pools, NULL);
    for (; labels != NULL && *lines != NULL; lines++) {
        char line[200];
        (void)snprintf(line, sizeof(line), "nvidia.com/%s\n", *lines);
        CHECK_CONTAINS(labels, line);
    }
}

#define EXPECT(machine, pools, ...) expect(machine, pools, (const char *const[]){__VA_ARGS__, NULL})

static struct weft_pool_share share_of(char *resource, uint32_t replicas, char *rename)
{
    return (struct weft_pool_share){.resource = resource, .replicas = replicas, .rename = rename};
}

static void whole_gpus(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/a100x2.json");
    if (m != NULL) {
        const struct weft_pool_settings none = {0};
        expect_file(m, &none, "PowerEdge  XE8545\n", "features/a100x2.labels");
    }
}

static void mig_mixed_with_sharing(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/mig.json");
    char slice[] = "nvidia.com/mig-1g.10gb";
    struct weft_pool_share share = share_of(slice, 3, NULL);
    const struct weft_pool_settings mixed = {
        .partitions = WEFT_PARTITIONS_MIXED, .shares = &share, .share_count = 1};
    if (m != NULL) {
        expect_file(m, &mixed, "", "features/mig-mixed.labels");
    }
}

/* Not all GPUs are split: the strategy does not hold, and the labels say so. */
static void mig_single_on_a_node_that_is_not(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/mig.json");
    const struct weft_pool_settings single = {.partitions = WEFT_PARTITIONS_SINGLE};
    const struct weft_pool_settings none = {.partitions = WEFT_PARTITIONS_NONE};
    if (m != NULL) {
        EXPECT(m, &single, "gpu.product=NVIDIA-H100-80GB-HBM3-MIG-INVALID", "gpu.count=0",
               "gpu.replicas=0", "gpu.sharing-strategy=", "gpu.memory=0", "mig.strategy=single",
               "gpu.family=hopper");
        EXPECT(m, &none, "gpu.product=NVIDIA-H100-80GB-HBM3", "gpu.count=2", "gpu.replicas=1");
        weft_autofree char *labels = labels_of(m, &none, NULL);
        CHECK(labels == NULL || strstr(labels, "mig.strategy") == NULL);
        CHECK(labels == NULL || strstr(labels, "mig-1g") == NULL);
    }
}

#define INSTANCE(id, number, profile)                                                              \
    "{\"id\": \"MIG-" id "\", \"index\": 0, \"parent\": 0, \"partition\": " number                 \
    ", \"model\": \"NVIDIA A30\", \"capability\": \"8.0\", \"profile\": \"" profile                \
    "\", \"memory_mib\": 5952, \"slices\": {\"gpu\": 1, \"compute\": 1, \"multiprocessors\": 14}}"
#define SPLIT                                                                                      \
    "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"parents\": [{\"index\": 0, \"model\": "       \
    "\"NVIDIA A30\", \"capability\": \"8.0\", \"memory_mib\": 24576}%s], \"devices\": [" INSTANCE( \
        "a", "0", "1g.6gb") ", " INSTANCE("b", "1", "%s") "]}"

static void mig_single(void)
{
    char text[2000];
    (void)snprintf(text, sizeof(text), SPLIT, "", "1g.6gb");
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of(text);
    char gpu[] = "nvidia.com/gpu";
    struct weft_pool_share share = share_of(gpu, 2, NULL);
    struct weft_pool_settings single = {.partitions = WEFT_PARTITIONS_SINGLE};
    EXPECT(m, &single, "gpu.product=NVIDIA-A30-MIG-1g.6gb", "gpu.count=2", "gpu.replicas=1",
           "gpu.memory=5952", "gpu.multiprocessors=14", "gpu.slices.gi=1", "gpu.engines.copy=0",
           "gpu.family=ampere", "mig.capable=true", "mig.strategy=single", "gpu.mode=unknown");
    single.shares = &share;
    single.share_count = 1;
    EXPECT(m, &single, "gpu.product=NVIDIA-A30-MIG-1g.6gb-SHARED", "gpu.replicas=2",
           "gpu.sharing-strategy=time-slicing");
    /* none: split GPUs are labelled as what they are, without replicas */
    const struct weft_pool_settings none = {0};
    EXPECT(m, &none, "gpu.product=NVIDIA-A30", "gpu.count=1", "gpu.replicas=0", "gpu.memory=24576",
           "gpu.sharing-strategy=none");
    /* another profile, or a GPU that is split into nothing: the strategy does not hold */
    single.share_count = 0;
    (void)snprintf(text, sizeof(text), SPLIT, "", "2g.12gb");
    weft_auto(weft_machine_free) struct weft_machine *two = machine_of(text);
    EXPECT(two, &single, "gpu.product=NVIDIA-A30-MIG-INVALID", "gpu.count=0");
    (void)snprintf(text, sizeof(text), SPLIT, ", {\"index\": 1, \"model\": \"NVIDIA A30\"}",
                   "1g.6gb");
    weft_auto(weft_machine_free) struct weft_machine *empty = machine_of(text);
    EXPECT(empty, &single, "gpu.product=NVIDIA-A30-MIG-INVALID", "gpu.memory=0");
    EXPECT(empty, &none, "gpu.count=2");
}

static void time_slicing_of_whole_gpus(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/a100x2.json");
    char gpu[] = "nvidia.com/gpu", other[] = "nvidia.com/part";
    struct weft_pool_share share = share_of(gpu, 4, NULL);
    struct weft_pool_settings pools = {.shares = &share, .share_count = 1};
    if (m == NULL) {
        return;
    }
    EXPECT(m, &pools, "gpu.product=NVIDIA-A100-SXM4-40GB-SHARED", "gpu.count=2", "gpu.replicas=4",
           "gpu.sharing-strategy=time-slicing");
    pools.rename_by_default = true; /* the name tells already */
    EXPECT(m, &pools, "gpu.product=NVIDIA-A100-SXM4-40GB", "gpu.replicas=4",
           "gpu.sharing-strategy=time-slicing");
    pools.rename_by_default = false;
    share.rename = other;
    EXPECT(m, &pools, "gpu.product=NVIDIA-A100-SXM4-40GB", "gpu.replicas=4");
}

static void families(void)
{
    static const struct {
        const char *capability, *family;
    } rows[] = {
        {"1.3", "tesla"},      {"2.0", "fermi"},        {"3.5", "kepler"},
        {"5.2", "maxwell"},    {"6.1", "pascal"},       {"7.0", "volta"},
        {"7.2", "volta"},      {"7.5", "turing"},       {"8.0", "ampere"},
        {"8.6", "ampere"},     {"8.9", "ada-lovelace"}, {"9.0", "hopper"},
        {"10.0", "blackwell"}, {"12.0", "blackwell"},   {"13.0", "rubin"},
        {"11.0", "undefined"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char text[200], family[60];
        (void)snprintf(text, sizeof(text),
                       "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": [{\"id\": "
                       "\"GPU-0\", \"capability\": \"%s\"}]}",
                       rows[i].capability);
        (void)snprintf(family, sizeof(family), "gpu.family=%s", rows[i].family);
        weft_auto(weft_machine_free) struct weft_machine *m = machine_of(text);
        EXPECT(m, &(const struct weft_pool_settings){0}, family);
    }
}

#define ODD(model, version)                                                                        \
    "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"driver_version\": \"" version                 \
    "\", \"devices\": [{\"id\": \"GPU-0\", \"model\": \"" model                                    \
    "\", \"pci_class\": \"0x030000\"}]}"

/* What is no label's value is made one; what is unknown has no label. */
static void odd_texts(void)
{
    const struct weft_pool_settings none = {0};
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_of(ODD("NVIDIA GeForce GTX 1050 (Mobile) / Max-Q!", "1.2.3.4"));
    EXPECT(m, &none, "gpu.product=NVIDIA-GeForce-GTX-1050-Mobile-Max-Q", "gpu.mode=graphics",
           "gpu.count=1");
    weft_autofree char *labels = labels_of(m, &none, "(none)");
    CHECK(labels == NULL || strstr(labels, "cuda.") == NULL);
    CHECK(labels == NULL || strstr(labels, "gpu.memory") == NULL);
    CHECK(labels == NULL || strstr(labels, "gpu.family") == NULL);
    CHECK(labels == NULL || strstr(labels, "gpu.clique") == NULL);
    CHECK(labels == NULL || strstr(labels, "gpu.machine=none\n") != NULL);
    /* 62 characters, then one that would be the 63rd and is none to end with */
    weft_auto(weft_machine_free) struct weft_machine *longer =
        machine_of(ODD("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-", "1.2"));
    EXPECT(longer, &none,
           "gpu.product=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

/* A configuration space with one power management capability, then this one at 0x44. */
static void config_of(uint8_t *config, const char *capability, size_t len)
{
    memset(config, 0, WEFT_VGPU_CONFIG_SIZE);
    config[0x06] = 0x10;
    config[0x34] = 0x40;
    config[0x40] = 0x01;
    config[0x41] = 0x44;
    memcpy(config + 0x44, capability, len);
}

#define VGPU_CAPABILITY                                                                            \
    "\x09\0\x1fVF\x07\x04??\0\x16"                                                                 \
    "535.54.03\0"                                                                                  \
    "r535_90\0\0\0"

static void virtual_gpus(void)
{
    uint8_t config[WEFT_VGPU_CONFIG_SIZE];
    struct weft_vgpu vgpu = {.present = true};
    const struct weft_pool_settings none = {0};
    config_of(config, VGPU_CAPABILITY, 31);     /* 5 + 4 + 22 */
    CHECK(!weft_vgpu_parse(config, 64, &vgpu)); /* for whoever is not root */
    CHECK(weft_vgpu_parse(config, sizeof(config), &vgpu));
    CHECK(vgpu.present);
    CHECK_STR(vgpu.version, "535.54.03");
    CHECK_STR(vgpu.branch, "r535_90");
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/a100x2.json");
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    const struct weft_feature_settings settings = {.pools = &none, .vgpu = &vgpu};
    CHECK(m != NULL && weft_features_build(m, &settings, &buf, NULL) == 0);
    CHECK_CONTAINS(weft_buf_text(&buf), "nvidia.com/vgpu.host-driver-branch=r535_90\n"
                                        "nvidia.com/vgpu.host-driver-version=535.54.03\n"
                                        "nvidia.com/vgpu.present=true\n");
    config[0x44 + 2] = 20; /* cut: the record does not fit */
    CHECK(weft_vgpu_parse(config, sizeof(config), &vgpu));
    CHECK(vgpu.present && vgpu.version[0] == '\0');
    config[0x44 + 3] = 'X'; /* somebody else's capability */
    CHECK(weft_vgpu_parse(config, sizeof(config), &vgpu));
    CHECK(!vgpu.present);
    config_of(config, VGPU_CAPABILITY, 31);
    config[0x44] = 0x05;
    config[0x45] = 0x40; /* a loop */
    CHECK(weft_vgpu_parse(config, sizeof(config), &vgpu));
    CHECK(!vgpu.present);
    weft_buf_reset(&buf);
    CHECK(m != NULL && weft_features_build(m, &settings, &buf, NULL) == 0);
    CHECK_CONTAINS(weft_buf_text(&buf), "nvidia.com/vgpu.present=false\n");
    CHECK(strstr(weft_buf_text(&buf), "vgpu.host") == NULL);
}

static void two_models_and_two_cliques(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of(
        "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": ["
        "{\"id\": \"GPU-0\", \"model\": \"A\", \"clique\": \"x.1\", \"pci_class\": \"0x030200\"},"
        "{\"id\": \"GPU-1\", \"model\": \"B\", \"clique\": \"x.2\", \"pci_class\": \"0x030000\"},"
        "{\"id\": \"GPU-2\", \"model\": \"B\", \"pci_class\": \"0x030200\"}]}");
    const struct weft_pool_settings none = {0};
    EXPECT(m, &none, "gpu.product=A", "gpu.count=1", "gpu.mode=unknown", "mig.capable=false");
    weft_autofree char *labels = labels_of(m, &none, NULL);
    CHECK(labels == NULL || strstr(labels, "gpu.clique") == NULL);
}

static void others_have_none(void)
{
    const struct weft_pool_settings none = {0};
    weft_auto(weft_machine_free) struct weft_machine *amd =
        machine_of("{\"weft_machine\": 1, \"vendor\": \"amd\", \"devices\": [{\"id\": \"a\"}]}");
    weft_autofree char *of_amd = labels_of(amd, &none, NULL);
    CHECK_STR(of_amd, "");
    weft_auto(weft_machine_free) struct weft_machine *empty =
        machine_of("{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": []}");
    weft_autofree char *of_empty = labels_of(empty, &none, NULL);
    CHECK_STR(of_empty, "");
}

static void without_memory(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = fixture_machine("features/mig.json");
    const struct weft_pool_settings mixed = {.partitions = WEFT_PARTITIONS_MIXED};
    const struct weft_feature_settings settings = {.pools = &mixed};
    int rc = -ENOMEM;
    uint64_t nth = 1;
    for (; m != NULL && nth < 200 && rc < 0; nth++) {
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, 1 << 20);
        (void)weft_mem_fail_after(nth);
        rc = weft_features_build(m, &settings, &buf, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK(nth > 5 && rc == 0);
}

WEFT_SUITE(features, {"whole GPUs", whole_gpus},
           {"MIG mixed, with sharing", mig_mixed_with_sharing},
           {"MIG single on a node that is not", mig_single_on_a_node_that_is_not},
           {"MIG single", mig_single}, {"time-slicing of whole GPUs", time_slicing_of_whole_gpus},
           {"families", families}, {"odd texts", odd_texts},
           {"two models and two cliques", two_models_and_two_cliques},
           {"virtual GPUs", virtual_gpus}, {"others have none", others_have_none},
           {"without memory", without_memory})
