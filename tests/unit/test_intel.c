/* SPDX-License-Identifier: Apache-2.0 */
/* Intel machines from sysfs: expected values by the table in tests/fixtures/sysfs/intel.txt. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host.h"
#include "tests/unit/conform.h"
#include "pkg/base/file.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

/* The fixture as a folder; static storage. */
static const char *folder(const char *name)
{
    static char dir[512];
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/intel.txt");
    (void)snprintf(dir, sizeof(dir), "%s/intel-%s", weft_test_dir(), name);
    if (host == NULL || mkdir(dir, 0755) < 0 || !fake_host_write(host, dir)) {
        CU_FAIL("folder");
        return "/nonexistent";
    }
    return dir;
}

static void conforms(void)
{
    const struct conform_case c = {
        .backend = &weft_backend_intel, .options = {.host_root = folder("conform")}, .devices = 4};
    conform(&c);
}

static void check(const struct weft_machine *m)
{
    static const struct {
        const char *id, *model, *render;
        int numa;
        uint64_t memory_mib;
    } rows[] = {
        {"card1-0", "Intel Data Center GPU Max 1550", "/dev/dri/renderD128", 0, 131072},
        {"card2-0", "Intel Data Center GPU Max 1550", "/dev/dri/renderD129", 0, 0},
        {"card4-0", "Intel Data Center GPU Flex 170", "/dev/dri/renderD131", 1, 0},
        {"card5-0", "Intel Arc Pro B60", "/dev/dri/renderD132", -1, 24576},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const struct weft_device *d = &m->devices[i];
        CHECK_STR(d->id, rows[i].id);
        CHECK_STR(d->model, rows[i].model);
        CHECK_INT(d->numa_node, rows[i].numa);
        CHECK_INT(d->memory_mib, rows[i].memory_mib);
        if (CHECK_INT(d->node_count, 2)) {
            CHECK_STR(d->nodes[1], rows[i].render);
        }
        for (size_t j = 0; j < 4; j++) {
            CHECK_INT(weft_machine_b(m, i, j), 0);
        }
    }
    CHECK_INT(m->devices[0].pcie.generation, 5); /* the card's slot, not its inner link */
    CHECK_INT(m->devices[0].pcie.width, 16);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "2 cards have Xe-Link ports");
    }
}

static void reads_the_cards(void)
{
    const struct weft_backend_options options = {.host_root = folder("cards")};
    void *state = NULL;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (CHECK_INT(weft_backend_intel.open(&options, &state, NULL), 0) &&
        CHECK_INT(weft_backend_intel.enumerate(state, &m, NULL), 0) &&
        CHECK_INT(m->device_count, 4)) {
        check(m);
    }
    weft_backend_intel.close(state);
}

/* Its registers read all ones: a link of 63 lanes. */
static void a_card_that_fell_off_the_bus_is_unhealthy(void)
{
    const struct weft_backend_options options = {.host_root = folder("dead")};
    void *state = NULL;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:2a:00.0/current_link_width",
                   options.host_root);
    if (CHECK_INT(weft_backend_intel.open(&options, &state, NULL), 0) &&
        CHECK_INT(weft_file_replace(path, "63\n", 3, 0600, NULL), 0) &&
        CHECK_INT(weft_backend_intel.enumerate(state, &m, NULL), 0)) {
        for (size_t i = 0; i < m->device_count; i++) {
            const bool dead = strcmp(m->devices[i].id, "card2-0") == 0;
            CHECK_INT(m->devices[i].healthy, !dead);
            CHECK_CONTAINS(m->devices[i].health_reason,
                           dead ? "does not answer on the PCI bus" : "");
        }
    }
    weft_backend_intel.close(state);
}

/* A card that is gone stays, unhealthy. */
static void a_lost_card_stays(void)
{
    const struct weft_backend_options options = {.host_root = folder("lost")};
    void *state = NULL;
    weft_auto(weft_machine_free) struct weft_machine *first = NULL;
    weft_auto(weft_machine_free) struct weft_machine *second = NULL;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:2a:00.0", options.host_root);
    if (CHECK_INT(weft_backend_intel.open(&options, &state, NULL), 0) &&
        CHECK_INT(weft_backend_intel.enumerate(state, &first, NULL), 0) &&
        CHECK_INT(unlink(path), 0) &&
        CHECK_INT(weft_backend_intel.enumerate(state, &second, NULL), 0) &&
        CHECK_INT(second->device_count, 4)) {
        CHECK_STR(second->devices[3].id, "card2-0");
        CHECK(!second->devices[3].healthy);
        CHECK(second->devices[0].healthy);
    }
    weft_backend_intel.close(state);
}

static void put_file(const char *root, const char *path)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s%s", root, path);
    for (char *p = text + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(text, 0755);
        *p = '/';
    }
    FILE *f = fopen(text, "we");
    CHECK(f != NULL && fclose(f) == 0);
}

/* card1 is 1a:00.0: it has its nodes and links; card2's renderer is missing. */
static void links_by_path_are_mounted(void)
{
    const struct weft_backend_options options = {.host_root = folder("paths")};
    static const char *const files[] = {
        "/dev/dri/card1",
        "/dev/dri/renderD128",
        "/dev/dri/card2",
        "/dev/dri/by-path/pci-0000:1a:00.0-card",
        "/dev/dri/by-path/pci-0000:1a:00.0-render",
        "/dev/dri/by-path/pci-0000:1a:00.01-card",
        "/dev/dri/by-path/pci-0000:00:02.0-card",
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(files); i++) {
        put_file(options.host_root, files[i]);
    }
    void *state = NULL;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (CHECK_INT(weft_backend_intel.open(&options, &state, NULL), 0) &&
        CHECK_INT(weft_backend_intel.enumerate(state, &m, NULL), 0) &&
        CHECK_INT(m->device_count, 4) && CHECK_INT(m->devices[0].mount_count, 2)) {
        CHECK_STR(m->devices[0].mounts[0], "/dev/dri/by-path/pci-0000:1a:00.0-card");
        CHECK_STR(m->devices[0].mounts[1], "/dev/dri/by-path/pci-0000:1a:00.0-render");
        CHECK(m->devices[0].healthy && !m->devices[1].healthy);
        CHECK_STR(m->devices[1].health_reason, "/dev/dri/renderD129 is not there");
        CHECK_INT(m->devices[1].mount_count, 0);
    }
    weft_backend_intel.close(state);
}

static void not_here(void)
{
    char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/intel-none", weft_test_dir());
    CHECK_INT(mkdir(dir, 0755), 0);
    const struct weft_backend_options options = {.host_root = dir};
    CHECK(!weft_backend_intel.probe(&options));
    CHECK(!weft_backend_amd.probe(&options));
    void *state = NULL;
    struct weft_error err = {0};
    const struct weft_backend_options nowhere = {.host_root = "/nonexistent"};
    CHECK_INT(weft_backend_intel.open(&nowhere, &state, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent");
    CHECK(state == NULL);
}

WEFT_SUITE(intel, {"conforms", conforms}, {"reads the cards", reads_the_cards},
           {"a card that fell off the bus is unhealthy", a_card_that_fell_off_the_bus_is_unhealthy},
           {"a lost card stays", a_lost_card_stays}, {"not here", not_here},
           {"links by path are mounted", links_by_path_are_mounted})
