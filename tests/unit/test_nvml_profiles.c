/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA backend on published machine profiles (data/nvml-profiles: the configurations of
 * another project's mock of the library). Each is played by our own mock: a profile's devices,
 * NVLinks, fabric and NUMA nodes are put into our mock's words, and what the backend makes of them
 * is checked. Runs where the profiles are at hand. */
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine.h"
#include "pkg/yaml/yaml.h"
#include "tests/unit/nvml_world.h"
#include "tests/unit/unit.h"

enum { PROFILE_MAX = 1 << 20 };

static const struct weft_json *at(const struct weft_json *node, const char *a, const char *b)
{
    const struct weft_json *child = weft_json_get(node, a);
    return b != NULL ? weft_json_get(child, b) : child;
}

static int number(const struct weft_json *node, const char *a, const char *b)
{
    return (int)weft_json_int(at(node, a, b), 0);
}

static const char *lower(const char *text, char *to, size_t size)
{
    (void)snprintf(to, size, "%s", text != NULL ? text : "");
    for (char *c = to; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + ('a' - 'A')) : *c;
    }
    return to;
}

/* The NUMA node of the root complex that lists the address. */
static int node_of(const struct weft_json *root, const char *address)
{
    const struct weft_json *complexes = at(root, "pcie_topology", "root_complexes");
    for (size_t i = 0; i < weft_json_count(complexes); i++) {
        const struct weft_json *complex = weft_json_at(complexes, i);
        const struct weft_json *devices = weft_json_get(complex, "devices");
        for (size_t k = 0; k < weft_json_count(devices); k++) {
            if (strcmp(weft_json_string(weft_json_at(devices, k)), address) == 0) {
                return number(complex, "numa_node", NULL);
            }
        }
    }
    return -1;
}

/* What holds for every GPU. */
static void put_every(const struct weft_json *root, struct weft_buf *buf)
{
    const struct weft_json *d = weft_json_get(root, "device_defaults");
    const struct weft_json *nvlink = weft_json_get(root, "nvlink");
    const char *cluster = weft_json_string(at(d, "fabric", "cluster_uuid"));
    (void)weft_buf_printf(
        buf,
        "\"every\": {\"name\": \"%s\", \"memory_mib\": %d, \"capability\": [%d, %d], "
        "\"pcie\": [%d, %d, %d, %d], \"recovery\": 0",
        weft_json_string(weft_json_get(d, "name")),
        (int)(weft_json_int(at(d, "memory", "total_bytes"), 0) >> 20),
        number(d, "compute_capability", "major"), number(d, "compute_capability", "minor"),
        number(d, "pcie", "current_link_gen"), number(d, "pcie", "current_link_width"),
        number(d, "pcie", "max_link_gen"), number(d, "pcie", "max_link_width"));
    if (number(nvlink, "links_per_gpu", NULL) > 0) {
        (void)weft_buf_printf(buf, ", \"links\": [[%d, \"switch\"]], \"rate\": %d",
                              number(nvlink, "links_per_gpu", NULL),
                              number(nvlink, "bandwidth_per_link_mbps", NULL));
    }
    if (cluster != NULL) { /* "auto": finished, with the fabric manager at work */
        (void)weft_buf_printf(buf,
                              ", \"fabric\": {\"state\": 3, \"status\": 0, \"clique\": %d, "
                              "\"cluster\": \"",
                              number(d, "fabric", "clique_id"));
        for (; *cluster != '\0'; cluster++) {
            if (*cluster != '-') {
                (void)weft_buf_putc(buf, *cluster);
            }
        }
        (void)weft_buf_puts(buf, "\"}");
    }
    (void)weft_buf_puts(buf, "},\n");
}

static void put_gpus(const struct weft_json *root, struct weft_buf *buf)
{
    const struct weft_json *devices = weft_json_get(root, "devices");
    for (size_t i = 0; i < weft_json_count(devices); i++) {
        const struct weft_json *d = weft_json_at(devices, i);
        const char *address = weft_json_string(at(d, "pci", "bus_id"));
        char bdf[32];
        (void)weft_buf_printf(buf,
                              "%s {\"uuid\": \"%s\", \"bdf\": \"%s\", \"minor\": %d, "
                              "\"affinity\": [%d]}",
                              i > 0 ? ",\n" : "\"gpus\": [", weft_json_string(at(d, "uuid", NULL)),
                              lower(address, bdf, sizeof(bdf)), number(d, "minor_number", NULL),
                              node_of(root, address != NULL ? address : ""));
    }
    (void)weft_buf_puts(buf, "]}\n");
}

static bool play(struct nvml_world *w, const char *path)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    struct weft_error err = {0};
    if (weft_file_read(path, PROFILE_MAX, &text, &len, &err) < 0 ||
        weft_yaml_parse(text, len, path, &root, &err) < 0) {
        return CHECK_STR(err.message, "");
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, PROFILE_MAX);
    (void)weft_buf_printf(&buf, "{\"driver\": \"%s\", \"cuda\": %d,\n",
                          weft_json_string(at(root, "system", "driver_version")),
                          number(root, "system", "cuda_version_major") * 1000 +
                              number(root, "system", "cuda_version_minor") * 10);
    put_every(root, &buf);
    put_gpus(root, &buf);
    nvml_world_up(w, "driver-absent.json", 8);
    nvml_world_put(w, "/mock/machine.json", weft_buf_text(&buf));
    return CHECK_INT(buf.status, 0);
}

static void published_profiles_are_the_machines_they_say(void)
{
    /* By grep in each file: devices `uuid: "GPU-`; links `links_per_gpu`; rate
     * `bandwidth_per_link_mbps`; MiB the first `total_bytes` / 1048576; node of the last device by
     * `pcie_topology`; cluster `cluster_uuid` with `clique_id` behind the dot. */
    static const struct {
        const char *name, *model, *capability, *driver, *cuda, *clique;
        size_t devices, links;
        uint64_t rate, mib;
        size_t last_node;
    } rows[] = {
        {"helm-profile-a100.yaml", "NVIDIA A100-SXM4-40GB", "8.0", "550.163.01", "12.4", "", 8, 12,
         25781, 40960, 1},
        {"helm-profile-gb200.yaml", "NVIDIA GB200", "10.0", "580.65.06", "13.0",
         "00000000-0000-0000-0000-000000000001.0", 8, 18, 53125, 196608, 3},
        {"helm-profile-gb300.yaml", "NVIDIA GB300 NVL", "10.0", "570.124.06", "12.8",
         "00000000-0000-0000-0000-000000000001.0", 8, 18, 53125, 294912, 3},
        {"helm-profile-h100.yaml", "NVIDIA H100 80GB HBM3", "9.0", "550.163.01", "12.4",
         "00000000-0000-0000-0000-000000000001.0", 8, 18, 26562, 81920, 1},
        {"helm-profile-l40s.yaml", "NVIDIA L40S", "8.9", "550.163.01", "12.4", "", 8, 0, 0, 49152,
         1},
        {"mock-nvml-config-a100.yaml", "NVIDIA A100-SXM4-40GB", "8.0", "550.163.01", "12.4", "", 8,
         12, 25781, 40960, 1},
        {"mock-nvml-config-h100.yaml", "NVIDIA H100 80GB HBM3", "9.0", "550.163.01", "12.4",
         "00000000-0000-0000-0000-000000000001.0", 8, 18, 26562, 81920, 1},
        {"mock-nvml-config-t4.yaml", "NVIDIA T4", "7.5", "550.163.01", "12.4", "", 4, 0, 0, 16384,
         0},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char name[96];
        struct nvml_world w;
        (void)snprintf(name, sizeof(name), "nvml-profiles/%s", rows[i].name);
        const char *path = weft_shared(name);
        if (path == NULL) {
            (void)printf("SKIP: no %s\n", name);
            return;
        }
        if (!play(&w, path)) {
            continue;
        }
        weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
        if (m == NULL || !CHECK_INT(m->device_count, rows[i].devices)) {
            continue;
        }
        const struct weft_device *last = &m->devices[m->device_count - 1];
        CHECK_STR(m->driver_version, rows[i].driver);
        CHECK_STR(m->runtime_version, rows[i].cuda);
        CHECK_STR(m->clique, rows[i].clique);
        CHECK_STR(last->model, rows[i].model);
        CHECK_STR(last->capability, rows[i].capability);
        CHECK_INT(last->memory_mib, rows[i].mib);
        CHECK_INT(last->links_up, rows[i].links);
        CHECK_INT(last->numa_node, rows[i].last_node);
        CHECK_INT(m->devices[0].numa_node, 0);
        CHECK_INT(weft_machine_b(m, 0, m->device_count - 1), rows[i].links * rows[i].rate);
    }
}

WEFT_SUITE(nvml_profiles, {"published profiles are the machines they say",
                           published_profiles_are_the_machines_they_say})
