/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA backend where something is lacking: a driver, its library, functions of it, answers
 * that an integrated GPU does not give. On the mock of the library. */
#include <errno.h>
#include <stdio.h>

#include "pkg/machine/discover-nvml-api.h"
#include "pkg/machine/discover-nvml.h"
#include "pkg/machine/discover.h"
#include "tests/unit/nvml_world.h"
#include "tests/unit/unit.h"

/* ---- what is not supported, and no driver at all ---- */

static void an_integrated_gpu_is_a_device(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "gb10.json", 0);
    nvml_world_put(&w, "/dev/nvidia0", "");
    nvml_world_put(&w, "/proc/driver/nvidia/gpus/000f:01:00.0/information",
                   "Model: \t\t NVIDIA GB10\nGPU UUID: \t GPU-x\nDevice Minor: \t 0\n");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 1)) {
        const struct weft_device *d = &m->devices[0];
        CHECK_STR(d->id, "GPU-00000500-0000-4000-8000-000000000500");
        CHECK_STR(d->model, "NVIDIA GB10");
        CHECK_INT(d->memory_mib, 0);
        CHECK(d->healthy);
        CHECK_INT(d->node_count, 1); /* its minor comes from /proc */
        CHECK(nvml_warns(m, "the driver tells no events"));
    }
}

static void a_gpu_without_any_name_gets_one(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "tegra.json", 0);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 1)) {
        CHECK_STR(m->devices[0].id, "GPU-index-0");
        CHECK_STR(m->devices[0].model, "Orin (nvgpu)");
        CHECK(m->devices[0].healthy);
        CHECK_INT(m->devices[0].node_count, 0);
    }
}

/* Told apart from a /dev that is not the driver's: there nothing is known. */
static void a_gpu_whose_node_is_missing_is_not_handed_out(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 7);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 8)) {
        CHECK(m->devices[6].healthy && !m->devices[7].healthy);
        CHECK_STR(m->devices[7].health_reason, "/dev/nvidia7 is not there");
        CHECK_INT(m->devices[7].node_count, 0);
    }
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/dev/nvidiactl", w.root);
    CHECK_INT(remove(path), 0);
    weft_auto(weft_machine_free) struct weft_machine *unseen = nvml_world_look(&w);
    CHECK(unseen != NULL && unseen->devices[7].healthy);
}

static void nodes_are_looked_for_below_the_dev_root(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 0);
    nvml_world_put(&w, "/run/nvidia/driver/dev/nvidiactl", "");
    nvml_world_put(&w, "/run/nvidia/driver/dev/nvidia0", "");
    w.options.dev_root = "/run/nvidia/driver";
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 8)) {
        CHECK(m->devices[0].healthy && !m->devices[1].healthy);
        CHECK_STR(m->devices[0].node_count > 0 ? m->devices[0].nodes[0] : "", "/dev/nvidia0");
        CHECK_INT(m->common_node_count, 1);
    }
}

static void wsl_is_one_device(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "l40s-8.json", 0);
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/dev/nvidiactl", w.root);
    CHECK_INT(remove(path), 0);
    nvml_world_put(&w, "/dev/dxg", "");
    w.options.library = NULL;
    CHECK(weft_backend_nvml.probe(&w.options));
    w.options.library = "build/none";
    CHECK(weft_backend_nvml.probe(&w.options));
    struct nvml_world again;
    nvml_world_up(&again, "l40s-8.json", 0);
    w.options.library = again.options.library;
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 1)) {
        CHECK_STR(m->devices[0].id, "all");
        CHECK(m->common_node_count > 0 &&
              strcmp(m->common_nodes[m->common_node_count - 1], "/dev/dxg") == 0);
    }
}

static void no_driver_is_a_machine_without_devices_and_a_reason(void)
{
    static const struct {
        const char *fixture, *reason;
    } rows[] = {
        {"driver-absent.json", "nvidia: the driver is not loaded (NVML 9)"},
        {"mismatch.json", "nvidia: the driver and its library differ in version: was the driver "
                          "updated without a restart? (NVML 18)"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct nvml_world w;
        nvml_world_up(&w, rows[i].fixture, 0);
        w.options.vendor = "nvidia";
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        CHECK_INT(weft_machine_discover(&w.options, &m, NULL), 0);
        if (m != NULL && CHECK_INT(m->warning_count, 1)) {
            CHECK_INT(m->device_count, 0);
            CHECK_STR(m->warnings[0], rows[i].reason);
        }
    }
    struct nvml_world w;
    nvml_world_up(&w, "driver-absent.json", 0);
    w.options.vendor = "nvidia";
    w.options.library = "/nowhere/libnvidia-ml.so.1";
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_discover(&w.options, &m, NULL), 0);
    if (m != NULL && CHECK_INT(m->warning_count, 1)) {
        CHECK_STR(m->warnings[0], "nvidia: /nowhere/libnvidia-ml.so.1 cannot be loaded");
    }
}

/* Found below the driver's root, as in a driver container, and the search names its places. */
static void the_library_is_sought_below_the_driver_root(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "l40s-8.json", 8);
    static const char *const none[] = {NULL};
    nvml_world_remove(&w, none); /* a copy, in <root>/mock */
    char from[300], to[400], driver[300];
    (void)snprintf(driver, sizeof(driver), "%s/driver", w.root);
    nvml_world_put(&w, "/driver/usr/lib64/x", "");
    (void)snprintf(from, sizeof(from), "%s", w.options.library);
    (void)snprintf(to, sizeof(to), "%s/usr/lib64/libnvidia-ml.so.1", driver);
    CHECK_INT(rename(from, to), 0);
    w.options.library = NULL;
    w.options.driver_root = driver;
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    CHECK_INT(m != NULL ? m->device_count : 0, 8);

    CHECK_INT(remove(to), 0);
    void *state = NULL;
    struct weft_error err = {0};
    if (weft_backend_nvml.open(&w.options, &state, &err) < 0) { /* unless this node has a driver */
        CHECK_CONTAINS(err.message, "libnvidia-ml.so.1 was not found");
    }
    weft_backend_nvml.close(state);
}

/* ---- older drivers: each symbol may be missing, and one thing is lost with it ---- */

static void every_symbol_but_five_is_optional(void)
{
    /* the five without which nothing can be asked, and for each other one, that the machine of 8
     * is still there and the lack is named */
    static const char *const needed[] = {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2",
                                         "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"};
#define NAME(name, parameters, newest, older, lost) newest,
    static const char *const all[] = {WEFT_NVML_FUNCTIONS(NAME)};
#undef NAME
    for (size_t i = 0; i < WEFT_ARRAY_LEN(all); i++) {
        struct nvml_world w;
        nvml_world_up(&w, "hgx-h100-8.json", 8);
        const char *const gone[] = {all[i], NULL};
        nvml_world_remove(&w, gone);
        bool is_needed = false;
        for (size_t n = 0; n < WEFT_ARRAY_LEN(needed); n++) {
            is_needed = is_needed || strcmp(all[i], needed[n]) == 0;
        }
        if (is_needed) {
            void *state = NULL;
            struct weft_error err = {0};
            CHECK_INT(weft_backend_nvml.open(&w.options, &state, &err), -ENODEV);
            CHECK_CONTAINS(err.message, all[i]);
            continue;
        }
        weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
        if (m != NULL) {
            CHECK_INT(m->device_count, 8);
            CHECK(strcmp(all[i], "nvmlDeviceGetGpuFabricInfo") == 0 || nvml_warns(m, all[i]));
        }
    }
}

static void missing_symbols_have_fallbacks(void)
{
    static const struct {
        const char *gone[3], *edit_from, *edit_to;
        uint64_t rate; /* of a link between 0 and 1 */
    } rows[] = {
        {{"nvmlDeviceGetNvLinkState"}, NULL, NULL, 26562},
        {{"nvmlDeviceGetFieldValues"}, NULL, NULL, 25000},
        {{"nvmlDeviceGetNvLinkRemoteDeviceType"},
         "\"recovery\"",
         "\"switch_links\": 18, \"x\"",
         26562},
        {{"nvmlDeviceGetNvLinkVersion"}, NULL, NULL, 26562},
        {{"nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetFieldValues"}, NULL, NULL, 25000},
        {{"nvmlDeviceGetP2PStatus"}, NULL, NULL, 26562},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct nvml_world w;
        nvml_world_up(&w, "hgx-h100-8.json", 8);
        nvml_world_remove(&w, rows[i].gone);
        if (rows[i].edit_from != NULL) {
            nvml_world_edit(&w, rows[i].edit_from, rows[i].edit_to);
        }
        weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
        if (m != NULL && !CHECK_INT(weft_machine_b(m, 0, 1), 18 * rows[i].rate)) {
            (void)fprintf(stderr, "without %s\n", rows[i].gone[0]);
        }
    }
}

static void the_older_fabric_call_is_used(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "gb200-tray.json", 4);
    static const char *const gone[] = {"nvmlDeviceGetGpuFabricInfoV", NULL};
    nvml_world_remove(&w, gone);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_STR(m->clique, "5e1f0a3c-0000-0000-0000-00000000a001.32766");
    }
}

WEFT_SUITE(nvml_lacks, {"an integrated GPU is a device", an_integrated_gpu_is_a_device},
           {"a GPU without any name gets one", a_gpu_without_any_name_gets_one},
           {"a GPU whose node is missing is not handed out",
            a_gpu_whose_node_is_missing_is_not_handed_out},
           {"nodes are looked for below the dev root", nodes_are_looked_for_below_the_dev_root},
           {"WSL is one device", wsl_is_one_device},
           {"no driver is a machine without devices and a reason",
            no_driver_is_a_machine_without_devices_and_a_reason},
           {"the library is sought below the driver root",
            the_library_is_sought_below_the_driver_root},
           {"every symbol but five is optional", every_symbol_but_five_is_optional},
           {"missing symbols have fallbacks", missing_symbols_have_fallbacks},
           {"the older fabric call is used", the_older_fabric_call_is_used})
