/* SPDX-License-Identifier: Apache-2.0 */
/* CDI files: what is in them, where they come from and when they go. Expected texts follow CDI's
 * SPEC.md and what NVIDIA's container toolkit writes for the same host, by hand. The Go tests hold
 * a written file against CDI's own library (plugin_respond_test.go). */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/cdi.h"
#include "deviceplugin/driver-files.h"
#include "deviceplugin/extras.h"
#include "deviceplugin/respond.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine.h"
#include "tests/unit/cdi_host.h"
#include "tests/unit/unit.h"

/* The text on one line, read back and written again; the error where there is one. */
static const char *flat(const struct weft_buf *text)
{
    static char line[8192];
    weft_auto(weft_json_free) struct weft_json *json = NULL;
    weft_auto(weft_buf_done) struct weft_buf out;
    weft_buf_init(&out, sizeof(line) - 1);
    struct weft_error err = {0};
    if (weft_json_parse(weft_buf_text(text), text->len, "cdi", &json, &err) < 0) {
        (void)snprintf(line, sizeof(line), "%s", err.message);
        return line;
    }
    struct weft_json_writer w;
    weft_json_writer_init(&w, &out, 0);
    weft_json_put_node(&w, json);
    CHECK_INT(out.status, 0);
    (void)snprintf(line, sizeof(line), "%s", weft_buf_text(&out));
    return line;
}

static const char *devices_file(const struct weft_cdi *cdi)
{
    static char text[512];
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_CDI_FILE_MAX);
    struct weft_error err = {0};
    if (weft_cdi_write_devices(cdi, &buf, &err) < 0) {
        (void)snprintf(text, sizeof(text), "%s", err.message);
        return text;
    }
    return buf.len > 0 ? flat(&buf) : "none";
}

#define NODE(path) "{\"path\":\"" path "\",\"permissions\":\"rw\"}"
#define AWAY(path)                                                                                 \
    "{\"path\":\"" path "\",\"hostPath\":\"/run/nvidia/driver" path "\",\"permissions\":\"rw\"}"
#define FILE_OPTIONS "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"rbind\",\"rprivate\"]}"

/* By what answers call it, and by its other name. */
static void devices_are_let_in_by_name(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = cdi_host_machine("nvidia");
    const struct weft_respond_settings uuid = {.strategies = WEFT_RESPOND_CDI_CRI};
    const struct weft_extras none = {0};
    const struct weft_cdi cdi = {.machine = m, .settings = &uuid, .extras = &none};
#define GPU_EDITS "\"containerEdits\":{\"deviceNodes\":[" NODE("/dev/nvidia0") "]}"
#define MIG_EDITS                                                                                  \
    "\"containerEdits\":{\"deviceNodes\":[" NODE("/dev/nvidia1") "," NODE(                         \
        "/dev/nvidia-caps/nvidia-cap12") "]}"
    CHECK_STR(
        devices_file(&cdi),
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.nvidia.com/gpu\","
        "\"devices\":[{\"name\":\"GPU-a\"," GPU_EDITS "},{\"name\":\"0\"," GPU_EDITS
        "},{\"name\":\"MIG-b\"," MIG_EDITS "},{\"name\":\"1:1\"," MIG_EDITS "}],"
        "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"],\"deviceNodes\":[" NODE(
            "/dev/nvidiactl") "]}}");
    weft_auto(weft_machine_free) struct weft_machine *amd = cdi_host_machine("amd");
    CHECK_INT(weft_machine_add_mount(&amd->devices[0], "/dev/dri/by-path/x"), 0);
    (void)snprintf(amd->devices[0].id, sizeof(amd->devices[0].id), "a b"); /* no name for CDI */
    const struct weft_respond_settings index = {.id_strategy = WEFT_RESPOND_INDEX};
    const struct weft_cdi other = {.machine = amd, .settings = &index, .extras = &none};
    CHECK_STR(
        devices_file(&other),
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.amd.com/gpu\",\"devices\":["
        "{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[" NODE(
            "/dev/nvidia0") "],"
                            "\"mounts\":[{\"hostPath\":\"/dev/dri/by-path/x\",\"containerPath\":"
                            "\"/dev/dri/by-path/x\"," FILE_OPTIONS
                            "]}},{\"name\":\"MIG-b\"," MIG_EDITS "},{\"name\":\"1:1\"," MIG_EDITS
                            "}],\"containerEdits\":{\"deviceNodes\":[" NODE(
                                "/dev/nvidiactl") "]}}");
}

/* Ids that look like indices of other devices: the names that answers use win. */
static void no_name_is_two_devices(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = cdi_host_machine("nvidia");
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "1:1");
    (void)snprintf(m->devices[1].id, sizeof(m->devices[1].id), "0");
    const struct weft_respond_settings uuid = {0}, index = {.id_strategy = WEFT_RESPOND_INDEX};
    const struct weft_extras none = {0};
    struct weft_cdi cdi = {.machine = m, .settings = &uuid, .extras = &none};
    CHECK_CONTAINS(devices_file(&cdi),
                   "\"devices\":[{\"name\":\"1:1\"," GPU_EDITS "},{\"name\":\"0\"," MIG_EDITS "}]");
    cdi.settings = &index;
    CHECK_CONTAINS(devices_file(&cdi),
                   "\"devices\":[{\"name\":\"0\"," GPU_EDITS "},{\"name\":\"1:1\"," MIG_EDITS "}]");
}

/* What the driver container has below its own root is at the usual place for a container.
 */
static void the_driver_is_mounted(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = cdi_host_machine("nvidia");
    struct weft_respond_settings settings = {.driver_root = weft_strdup("/run/nvidia/driver")};
    const struct weft_extras none = {0};
    char lib[] = "/usr/lib64", library[] = "/usr/lib64/libcuda.so.1",
         real[] = "/run/nvidia/driver/usr/lib64/libcuda.so.550.54.15",
         socket[] = "/run/nvidia-persistenced/socket",
         there[] = "/run/nvidia/driver/run/nvidia-persistenced/socket";
    struct weft_driver_file items[] = {{real, library, false}, {there, socket, true}};
    const struct weft_driver_files files = {
        .items = items, .count = 2, .folders = {lib}, .folder_count = 1};
    struct weft_cdi cdi = {.machine = m,
                           .settings = &settings,
                           .extras = &none,
                           .files = &files,
                           .hook = "/usr/bin/nvidia-cdi-hook"};
#define MOUNTED                                                                                    \
    "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"],\"deviceNodes\":[" AWAY(        \
        "/dev/nvidiactl") "],\"mounts\":[{\"hostPath\":\"/run/nvidia/driver/usr/lib64/"            \
                          "libcuda.so.550.54.15\",\"containerPath\":\"/usr/lib64/"                 \
                          "libcuda.so.1\"," FILE_OPTIONS                                           \
                          ",{\"hostPath\":\"/run/nvidia/driver/run/nvidia-persistenced/socket\","  \
                          "\"containerPath\":\"/run/nvidia-persistenced/socket\",\"options\":["    \
                          "\"nosuid\",\"nodev\",\"rbind\",\"rprivate\",\"noexec\"]}],"
    CHECK_CONTAINS(
        devices_file(&cdi),
        "{\"name\":\"GPU-a\",\"containerEdits\":{\"deviceNodes\":[" AWAY("/dev/nvidia0") "]}}");
    CHECK_CONTAINS(devices_file(&cdi),
                   MOUNTED "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":"
                           "\"/usr/bin/nvidia-cdi-hook\",\"args\":[\"nvidia-cdi-hook\","
                           "\"update-ldcache\",\"--folder\",\"/usr/lib64\"]}]}}");
    cdi.hook = "/opt/bin/nvidia-ctk";
    CHECK_CONTAINS(devices_file(&cdi), "\"path\":\"/opt/bin/nvidia-ctk\",\"args\":[\"nvidia-ctk\","
                                       "\"hook\",\"update-ldcache\",\"--folder\",\"/usr/lib64\"]");
    cdi.hook = NULL;
    CHECK(strstr(devices_file(&cdi), "hooks") == NULL);
    weft_respond_settings_done(&settings);
}

static void a_device_that_cannot_be_let_in_is_named(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    const struct weft_respond_settings settings = {0};
    const struct weft_extras none = {0};
    CHECK_INT(weft_machine_new("test", 1, 0, &m, NULL), 0);
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "GPU-x");
    const struct weft_cdi cdi = {.machine = m, .settings = &settings, .extras = &none};
    CHECK_STR(devices_file(&cdi), "device GPU-x has no device node that CDI could let in");
    m->devices[0].healthy = false; /* nobody is given it */
    CHECK_STR(devices_file(&cdi), "none");
    m->devices[0].healthy = true;
    CHECK_INT(weft_machine_add_common_node(m, "/dev/dxg"), 0);
    CHECK_CONTAINS(devices_file(&cdi),
                   "{\"name\":\"GPU-x\",\"containerEdits\":{\"deviceNodes\":[" NODE("/dev/dxg"));
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "GPU x");
    CHECK_CONTAINS(devices_file(&cdi), "CDI cannot name the device GPU x");
}

/* ---- features ---- */

static const char *extra_file(const struct weft_cdi *cdi, int extra)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_CDI_FILE_MAX);
    CHECK_INT(weft_cdi_write_extra(cdi, extra, &buf), 0);
    return buf.len > 0 ? flat(&buf) : "none";
}

static void features_are_found_and_written(void)
{
    cdi_host_new("features");
    static const char *const nodes[] = {
        "/dev/nvidiactl",          "/dev/nvidia-caps-imex-channels/channel7",
        "/dev/nvidia-fs0",         "/dev/nvidia-fs1",
        "/dev/infiniband/uverbs0", "/dev/infiniband/umad0",
        "/dev/infiniband/rdma_cm", "/etc/cufile.json"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(nodes); i++) {
        cdi_host_put(nodes[i]);
    }
    const struct weft_respond_settings settings = {.gdrcopy = true,
                                                   .gds = true,
                                                   .mofed = true,
                                                   .imex_channels = {0, 7},
                                                   .imex_channel_count = 2};
    weft_auto(weft_extras_done) struct weft_extras extras = {0};
    weft_auto(weft_buf_done) struct weft_buf missing;
    weft_buf_init(&missing, 1024);
    CHECK_INT(weft_extras_find(&settings, cdi_host_root, &extras, &missing, NULL), 0);
    CHECK_STR(weft_buf_text(&missing), "/dev/nvidia-caps-imex-channels/channel0 /dev/gdrdrv");
    CHECK_INT(extras.node_count, 5);
    CHECK_INT(extras.imex_channel_count, 1);
    weft_auto(weft_machine_free) struct weft_machine *m = cdi_host_machine("nvidia");
    const struct weft_cdi cdi = {.machine = m, .settings = &settings, .extras = &extras};
    CHECK_STR(extra_file(&cdi, WEFT_EXTRA_GDRCOPY), "none");
    CHECK_STR(extra_file(&cdi, WEFT_EXTRA_IMEX),
              "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.nvidia.com/imex-channel\","
              "\"devices\":[{\"name\":\"7\",\"containerEdits\":{\"deviceNodes\":[" NODE(
                  "/dev/nvidia-caps-imex-channels/channel7") "]}}]}");
    CHECK_STR(
        extra_file(&cdi, WEFT_EXTRA_GDS),
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.nvidia.com/gds\",\"devices\":"
        "[{\"name\":\"all\",\"containerEdits\":{\"deviceNodes\":[" NODE("/dev/nvidia-fs0") "," NODE(
            "/dev/nvidia-fs1") "],\"mounts\":[{\"hostPath\":\"/etc/cufile.json\","
                               "\"containerPath\":\"/etc/cufile.json\"," FILE_OPTIONS "]}}]}");
    CHECK_STR(extra_file(&cdi, WEFT_EXTRA_MOFED),
              "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.nvidia.com/mofed\","
              "\"devices\":[{\"name\":\"all\",\"containerEdits\":{\"deviceNodes\":[" NODE(
                  "/dev/infiniband/uverbs0") "," NODE("/dev/infiniband/rdma_cm") "]}}]}");
    struct weft_respond_settings strict = settings;
    strict.imex_required = true;
    struct weft_error err = {0};
    CHECK_INT(weft_extras_find(&strict, cdi_host_root, &extras, NULL, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/dev/nvidia-caps-imex-channels/channel0 is not there");
}

/* In the driver container's /dev, where that is seen; else in ours. */
static void features_of_a_driver_container(void)
{
    cdi_host_new("features-driver");
    cdi_host_put("/dev/gdrdrv");
    struct weft_respond_settings settings = {.gdrcopy = true, .driver_root = weft_strdup("/drv")};
    weft_auto(weft_extras_done) struct weft_extras ours = {0}, theirs = {0}, again = {0};
    CHECK_INT(weft_extras_find(&settings, cdi_host_root, &ours, NULL, NULL), 0);
    CHECK_INT(ours.node_count, 1);
    cdi_host_put("/drv/dev/nvidiactl");
    CHECK_INT(weft_extras_find(&settings, cdi_host_root, &theirs, NULL, NULL), 0);
    CHECK_INT(theirs.node_count, 0);
    cdi_host_put("/drv/dev/gdrdrv");
    CHECK_INT(weft_extras_find(&settings, cdi_host_root, &again, NULL, NULL), 0);
    CHECK_STR(again.node_count > 0 ? again.nodes[0] : "", "/dev/gdrdrv");
    weft_respond_settings_done(&settings);
}

/* ---- the driver's files ---- */

static void the_drivers_files_are_found(void)
{
    cdi_host_new("driver");
    cdi_host_driver();
    static const char *const expected[][2] = {
        {"/usr/lib/x86_64-linux-gnu/libcuda.so",
         "/drv/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15"},
        {"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
         "/drv/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15"},
        {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
         "/drv/usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.550.54.15"},
        {"/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.550.54.15",
         "/drv/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.550.54.15"},
        {"/usr/bin/nvidia-smi", "/drv/usr/bin/nvidia-smi"},
        {"/run/nvidia-persistenced/socket", "/drv/run/nvidia-persistenced/socket"},
        {"/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin",
         "/drv/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin"},
    };
    weft_auto(weft_driver_files_done) struct weft_driver_files files = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_driver_files_find(cdi_host_root, "/drv", "550.54.15", &files, &err), 0);
    CHECK_STR(err.message, "");
    if (CHECK_INT(files.count, WEFT_ARRAY_LEN(expected))) {
        for (size_t i = 0; i < files.count; i++) {
            CHECK_STR(files.items[i].container, expected[i][0]);
            CHECK_STR(files.items[i].host, expected[i][1]);
            CHECK_INT(files.items[i].socket, i == 5);
        }
    }
    if (CHECK_INT(files.folder_count, 2)) {
        CHECK_STR(files.folders[0], "/usr/lib/x86_64-linux-gnu");
        CHECK_STR(files.folders[1], "/usr/lib/x86_64-linux-gnu/vdpau");
    }
    struct weft_driver_files untouched = {0};
    CHECK_INT(weft_driver_files_find(cdi_host_root, "", "560.1", &untouched, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "no libcuda.so.1 of driver \"560.1\"");
    CHECK_INT(weft_driver_files_find(cdi_host_root, "", "", &untouched, &err), -ENOENT);
    CHECK(untouched.items == NULL);
}

/* ---- the files themselves ---- */

static void files_are_whole_and_go_when_told(void)
{
    cdi_host_new("save");
    char folder[CDI_HOST_PATH], path[WEFT_CDI_PATH_MAX], text[64];
    (void)snprintf(folder, sizeof(folder), "%s", cdi_host_path("/cdi"));
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 64);
    (void)weft_buf_puts(&buf, "{}\n");
    (void)weft_cdi_path(folder, "k8s.device-plugin.nvidia.com", "gpu", path);
    CHECK_STR(strrchr(path, '/'), "/k8s.device-plugin.nvidia.com-gpu.json");
    const mode_t mask = umask(077);
    CHECK_INT(weft_cdi_save(path, &buf, NULL), 0);
    CHECK_INT(weft_cdi_save(path, &buf, NULL), 0);
    (void)umask(mask);
    struct stat st = {0};
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0644); /* the runtime may not be root */
    CHECK_INT(stat(folder, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0755);
    cdi_host_put("/cdi/k8s.device-plugin.amd.com-gpu.json");
    cdi_host_put("/cdi/k8s.device-plugin.nvidia.com-gds.json");
    cdi_host_put("/cdi/nvidia.com-gpu.json"); /* another program's */
    static const char left[] = "/cdi/k8s.device-plugin.nvidia.com-gpu.json.tmp-0";
    cdi_host_put(left); /* by one that was killed */
    CHECK_INT(weft_cdi_remove(folder, NULL), 3);
    CHECK(access(cdi_host_path(left), F_OK) < 0);
    CHECK_INT(weft_cdi_remove(folder, NULL), 0);
    CHECK_INT(access(cdi_host_path("/cdi/nvidia.com-gpu.json"), F_OK), 0);
    CHECK_INT(weft_cdi_remove("/nonexistent", NULL), 0);
    cdi_host_put("/file");
    (void)snprintf(text, sizeof(text), "x");
    struct weft_error err = {0};
    (void)weft_cdi_path(cdi_host_path("/file"), "v", "gpu", path);
    CHECK(weft_cdi_save(path, &buf, &err) < 0);
    CHECK_CONTAINS(err.message, "/file");
    CHECK_INT(weft_cdi_remove(cdi_host_path("/file"), &err), -ENOTDIR);
}

/* ---- without memory ---- */

static int make_all(struct weft_driver_files *files, struct weft_extras *extras,
                    struct weft_machine *m, struct weft_buf *buf)
{
    static const struct weft_respond_settings settings = {
        .gds = true, .imex_channels = {7}, .imex_channel_count = 1};
    int rc = weft_driver_files_find(cdi_host_root, "", "550.54.15", files, NULL);
    rc = rc < 0 ? rc : weft_extras_find(&settings, cdi_host_root, extras, NULL, NULL);
    const struct weft_cdi cdi = {
        .machine = m, .settings = &settings, .extras = extras, .files = files, .hook = "/h"};
    rc = rc < 0 ? rc : weft_cdi_write_devices(&cdi, buf, NULL);
    return rc < 0 ? rc : weft_cdi_write_extra(&cdi, WEFT_EXTRA_IMEX, buf);
}

static void no_allocation_is_missed(void)
{
    cdi_host_new("memory");
    cdi_host_driver();
    cdi_host_put("/dev/nvidia-caps-imex-channels/channel7");
    cdi_host_put("/dev/nvidia-fs0");
    weft_auto(weft_machine_free) struct weft_machine *m = cdi_host_machine("nvidia");
    int rc = -1, n = 0;
    for (n = 1; rc < 0 && n < 2000; n++) {
        weft_auto(weft_driver_files_done) struct weft_driver_files files = {0};
        weft_auto(weft_extras_done) struct weft_extras extras = {0};
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, WEFT_CDI_FILE_MAX);
        weft_mem_fail_after((uint64_t)n);
        rc = make_all(&files, &extras, m, &buf);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        CHECK(rc < 0 || (files.count == 7 && extras.node_count == 2));
    }
    CHECK_INT(rc, 0);
    CHECK(n > 20);
}

WEFT_SUITE(cdi, {"devices are let in by name", devices_are_let_in_by_name},
           {"no name is two devices", no_name_is_two_devices},
           {"the driver is mounted", the_driver_is_mounted},
           {"a device that cannot be let in is named", a_device_that_cannot_be_let_in_is_named},
           {"features are found and written", features_are_found_and_written},
           {"features of a driver container", features_of_a_driver_container},
           {"the driver's files are found", the_drivers_files_are_found},
           {"files are whole and go when told", files_are_whole_and_go_when_told},
           {"no allocation is missed", no_allocation_is_missed})
