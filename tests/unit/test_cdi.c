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
#include "deviceplugin/options.h"
#include "deviceplugin/prepare.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

enum { PATH_SIZE = 600 };

/* ---- a host ---- */

static char root[300];

static void new_root(const char *name)
{
    (void)snprintf(root, sizeof(root), "%s/%s", weft_test_dir(), name);
    CHECK_INT(mkdir(root, 0755), 0);
}

/* A path below the root, with its folders made. */
static const char *below(const char *path)
{
    static char whole[PATH_SIZE];
    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(whole, 0755);
        *p = '/';
    }
    return whole;
}

static void put_file(const char *path)
{
    CHECK_INT(weft_file_replace(below(path), "x", 1, 0644, NULL), 0);
}

static void put_link(const char *path, const char *target)
{
    CHECK_INT(symlink(target, below(path)), 0);
}

/* Two GPUs, the second of which is partition 1 of GPU 1. */
static struct weft_machine *machine_of(const char *vendor)
{
    struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("test", 2, 0, &m, NULL), 0);
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor);
    (void)snprintf(m->driver_version, sizeof(m->driver_version), "550.54.15");
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "GPU-a");
    (void)snprintf(m->devices[1].id, sizeof(m->devices[1].id), "MIG-b");
    m->devices[1].index = m->devices[1].parent = m->devices[1].partition = 1;
    CHECK_INT(weft_machine_add_node(&m->devices[0], "/dev/nvidia0"), 0);
    CHECK_INT(weft_machine_add_node(&m->devices[1], "/dev/nvidia1"), 0);
    CHECK_INT(weft_machine_add_node(&m->devices[1], "/dev/nvidia-caps/nvidia-cap12"), 0);
    CHECK_INT(weft_machine_add_common_node(m, "/dev/nvidiactl"), 0);
    return m;
}

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

static void devices_are_let_in_by_name(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia");
    const struct weft_respond_settings uuid = {.strategies = WEFT_RESPOND_CDI_CRI};
    const struct weft_extras none = {0};
    const struct weft_cdi cdi = {.machine = m, .settings = &uuid, .extras = &none};
    CHECK_STR(devices_file(&cdi),
              "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.nvidia.com/"
              "gpu\","
              "\"devices\":[{\"name\":\"GPU-a\",\"containerEdits\":{\"deviceNodes\":"
              "[" NODE("/dev/nvidia0") "]}},{\"name\":\"MIG-b\",\"containerEdits\":{"
                                       "\"deviceNodes\":[" NODE("/dev/nvidia1") "," NODE(
                                           "/dev/nvidia-caps/nvidia-cap12") "]}}],"
                                                                            "\"contai"
                                                                            "nerEdits"
                                                                            "\":{"
                                                                            "\"env\":"
                                                                            "[\"NVIDI"
                                                                            "A_"
                                                                            "VISIBLE_"
                                                                            "DEVICES="
                                                                            "void\"],"
                                                                            "\"device"
                                                                            "Nodes\":"
                                                                            "[" NODE("/dev"
                                                                                     "/nvi"
                                                                                     "diac"
                                                                                     "tl") "]}}");
    weft_auto(weft_machine_free) struct weft_machine *amd = machine_of("amd");
    CHECK_INT(weft_machine_add_mount(&amd->devices[0], "/dev/dri/by-path/x"), 0);
    const struct weft_respond_settings index = {.id_strategy = WEFT_RESPOND_INDEX};
    const struct weft_cdi other = {.machine = amd, .settings = &index, .extras = &none};
    CHECK_STR(
        devices_file(&other),
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.device-plugin.amd.com/gpu\",\"devices\":["
        "{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[" NODE(
            "/dev/nvidia0") "],"
                            "\"mounts\":[{\"hostPath\":\"/dev/dri/by-path/x\",\"containerPath\":"
                            "\"/dev/dri/by-path/x\"," FILE_OPTIONS "]}},"
                            "{\"name\":\"1:1\",\"containerEdits\":{\"deviceNodes\":[" NODE(
                                "/dev/"
                                "nvidia"
                                "1") "," NODE("/dev/nvidia-caps/nvidia-cap12") "]}}],"
                                                                               "\"containerEdits\":"
                                                                               "{"
                                                                               "\"deviceNodes\":"
                                                                               "[" NODE("/dev/"
                                                                                        "nvidiact"
                                                                                        "l") "]}"
                                                                                             "}");
}

/* What the driver container has below its own root is at the usual place for a container. */
static void the_driver_is_mounted(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia");
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
    new_root("features");
    static const char *const nodes[] = {
        "/dev/nvidiactl",          "/dev/nvidia-caps-imex-channels/channel7",
        "/dev/nvidia-fs0",         "/dev/nvidia-fs1",
        "/dev/infiniband/uverbs0", "/dev/infiniband/umad0",
        "/dev/infiniband/rdma_cm", "/etc/cufile.json"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(nodes); i++) {
        put_file(nodes[i]);
    }
    const struct weft_respond_settings settings = {.gdrcopy = true,
                                                   .gds = true,
                                                   .mofed = true,
                                                   .imex_channels = {0, 7},
                                                   .imex_channel_count = 2};
    weft_auto(weft_extras_done) struct weft_extras extras = {0};
    weft_auto(weft_buf_done) struct weft_buf missing;
    weft_buf_init(&missing, 1024);
    CHECK_INT(weft_extras_find(&settings, root, &extras, &missing, NULL), 0);
    CHECK_STR(weft_buf_text(&missing), "/dev/nvidia-caps-imex-channels/channel0 /dev/gdrdrv");
    CHECK_INT(extras.node_count, 5);
    CHECK_INT(extras.imex_channel_count, 1);
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia");
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
    CHECK_INT(weft_extras_find(&strict, root, &extras, NULL, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/dev/nvidia-caps-imex-channels/channel0 is not there");
}

/* In the driver container's /dev, where that is seen; else in ours. */
static void features_of_a_driver_container(void)
{
    new_root("features-driver");
    put_file("/dev/gdrdrv");
    struct weft_respond_settings settings = {.gdrcopy = true, .driver_root = weft_strdup("/drv")};
    weft_auto(weft_extras_done) struct weft_extras ours = {0}, theirs = {0}, again = {0};
    CHECK_INT(weft_extras_find(&settings, root, &ours, NULL, NULL), 0);
    CHECK_INT(ours.node_count, 1);
    put_file("/drv/dev/nvidiactl");
    CHECK_INT(weft_extras_find(&settings, root, &theirs, NULL, NULL), 0);
    CHECK_INT(theirs.node_count, 0);
    put_file("/drv/dev/gdrdrv");
    CHECK_INT(weft_extras_find(&settings, root, &again, NULL, NULL), 0);
    CHECK_STR(again.node_count > 0 ? again.nodes[0] : "", "/dev/gdrdrv");
    weft_respond_settings_done(&settings);
}

/* ---- the driver's files ---- */

/* Debian's layout: libcuda.so.1 leads over /etc/alternatives to the version's folder. */
static void put_driver(void)
{
    put_file("/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15");
    put_file("/usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.550.54.15");
    put_file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.1"); /* an older one that stayed */
    put_file("/usr/lib/x86_64-linux-gnu/libcudart.so.12");       /* not the driver's */
    put_file("/usr/lib/x86_64-linux-gnu/libc.so.6");
    put_link("/etc/alternatives/cuda", "/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15");
    put_link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/cuda");
    put_link("/usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda.so.1");
    put_link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "nvidia/libnvidia-ml.so.550.54.15");
    put_link("/usr/lib/x86_64-linux-gnu/libnvidia-gone.so.1", "nvidia/gone.so.550.54.15");
    put_file("/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.550.54.15");
    put_file("/usr/bin/nvidia-smi");
    put_file("/run/nvidia-persistenced/socket");
    put_file("/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin");
    put_file("/lib/firmware/nvidia/550.54.15/README");
}

static void the_drivers_files_are_found(void)
{
    new_root("driver");
    put_driver();
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
    CHECK_INT(weft_driver_files_find(root, "/drv", "550.54.15", &files, &err), 0);
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
    CHECK_INT(weft_driver_files_find(root, "", "560.1", &untouched, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "no libcuda.so.1 of driver \"560.1\"");
    CHECK_INT(weft_driver_files_find(root, "", "", &untouched, &err), -ENOENT);
    CHECK(untouched.items == NULL);
}

/* ---- the files themselves ---- */

static void files_are_whole_and_go_when_told(void)
{
    new_root("save");
    char folder[PATH_SIZE], path[WEFT_CDI_PATH_MAX], text[64];
    (void)snprintf(folder, sizeof(folder), "%s", below("/cdi"));
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
    put_file("/cdi/k8s.device-plugin.amd.com-gpu.json");
    put_file("/cdi/k8s.device-plugin.nvidia.com-gds.json");
    put_file("/cdi/nvidia.com-gpu.json"); /* another program's */
    CHECK_INT(weft_cdi_remove(folder, NULL), 3);
    CHECK_INT(weft_cdi_remove(folder, NULL), 0);
    CHECK_INT(access(below("/cdi/nvidia.com-gpu.json"), F_OK), 0);
    CHECK_INT(weft_cdi_remove("/nonexistent", NULL), 0);
    put_file("/file");
    (void)snprintf(text, sizeof(text), "x");
    struct weft_error err = {0};
    (void)weft_cdi_path(below("/file"), "v", "gpu", path);
    CHECK(weft_cdi_save(path, &buf, &err) < 0);
    CHECK_CONTAINS(err.message, "/file");
    CHECK_INT(weft_cdi_remove(below("/file"), &err), -ENOTDIR);
}

/* ---- prepare ---- */

struct world {
    struct weft_loop *loop;
    struct weft_options options;
    struct weft_prepare *prepare;
    struct weft_machine *ready;
    int readies;
};

static void on_ready(void *data, struct weft_machine *machine)
{
    struct world *w = data;
    weft_machine_free(w->ready);
    w->ready = machine;
    w->readies++;
}

static void world_up(struct world *w, const char *name, unsigned strategies)
{
    *w = (struct world){0};
    new_root(name);
    w->options.host_root = weft_strdup(root);
    w->options.respond.cdi_folder = weft_strdup(below("/cdi"));
    w->options.respond.strategies = strategies;
    CHECK_INT(weft_loop_new(&w->loop, NULL), 0);
    const struct weft_prepare_options options = {
        .loop = w->loop, .options = &w->options, .ready = on_ready, .data = w};
    CHECK_INT(weft_prepare_new(&options, &w->prepare, NULL), 0);
}

static void world_down(struct world *w)
{
    weft_prepare_free(w->prepare);
    weft_machine_free(w->ready);
    weft_loop_free(w->loop);
    weft_options_done(&w->options);
}

static bool file_there(void)
{
    char path[PATH_SIZE]; /* makes no folder */
    (void)snprintf(path, sizeof(path), "%s/cdi/k8s.device-plugin.nvidia.com-gpu.json", root);
    return access(path, R_OK) == 0;
}

static const char *reason_of(const struct world *w)
{
    static char text[128];
    if (w->ready == NULL || w->ready->device_count == 0) {
        return "no device";
    }
    (void)snprintf(text, sizeof(text), "%s%s", w->ready->devices[0].healthy ? "healthy" : "",
                   w->ready->devices[0].health_reason);
    return text;
}

static void nothing_is_written_without_need(void)
{
    struct world w;
    world_up(&w, "prepare-none", WEFT_RESPOND_ENVVAR);
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    CHECK_STR(reason_of(&w), "healthy");
    CHECK(!file_there());
    weft_prepare_again(w.prepare);
    CHECK_INT(w.readies, 1);
    world_down(&w);
}

/* The file is there before the machine is; what cannot be written makes devices unhealthy, and is
 * written later. */
static void a_file_is_there_before_its_devices(void)
{
    struct world w;
    world_up(&w, "prepare", WEFT_RESPOND_CDI_CRI);
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    CHECK_CONTAINS(reason_of(&w), "no libcuda.so.1 of driver \"550.54.15\"");
    CHECK(!file_there());
    put_driver();
    put_file("/cdi"); /* no folder */
    weft_prepare_again(w.prepare);
    CHECK_CONTAINS(reason_of(&w), "cdi");
    CHECK(strstr(reason_of(&w), "healthy") == NULL);
    CHECK_INT(unlink(below("/cdi")), 0);
    weft_prepare_again(w.prepare);
    CHECK_STR(reason_of(&w), "healthy");
    CHECK(file_there());
    CHECK_INT(w.readies, 3);
    /* a machine without devices leaves it alone */
    struct weft_machine *empty = NULL;
    CHECK_INT(weft_machine_new("none", 0, 0, &empty, NULL), 0);
    weft_prepare_use(w.prepare, empty);
    CHECK(file_there());
    CHECK_INT(w.readies, 4);
    world_down(&w);
    CHECK(file_there()); /* a stop does, too */
}

static void a_removed_file_is_written_again(void)
{
    struct world w;
    world_up(&w, "prepare-removed", WEFT_RESPOND_CDI_ANNOTATIONS);
    put_driver();
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    const char *path = below("/cdi/k8s.device-plugin.nvidia.com-gpu.json");
    struct stat first = {0}, second = {0}, third = {0};
    CHECK_INT(stat(path, &first), 0);
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    CHECK_INT(stat(path, &second), 0);
    CHECK(first.st_ino == second.st_ino); /* the same is not written again */
    CHECK_INT(unlink(path), 0);
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    CHECK_INT(stat(path, &third), 0);
    struct weft_machine *other = machine_of("nvidia");
    (void)snprintf(other->devices[0].id, sizeof(other->devices[0].id), "GPU-new");
    weft_prepare_use(w.prepare, other);
    weft_autofree char *text = NULL;
    CHECK_INT(weft_file_read(path, WEFT_CDI_FILE_MAX, &text, NULL, NULL), 0);
    CHECK_CONTAINS(text != NULL ? text : "", "\"GPU-new\"");
    world_down(&w);
}

/* Strategies may change while the plugin runs. */
static void new_options_are_made_ready(void)
{
    struct world w;
    world_up(&w, "prepare-options", WEFT_RESPOND_ENVVAR);
    put_driver();
    put_file("/dev/nvidiactl");
    weft_prepare_use(w.prepare, machine_of("nvidia"));
    w.options.respond.strategies |= WEFT_RESPOND_CDI_CRI;
    w.options.respond.imex_channels[0] = 3;
    w.options.respond.imex_channel_count = 1;
    weft_prepare_again(w.prepare);
    CHECK(file_there());
    CHECK_STR(reason_of(&w), "healthy"); /* the channel is not required */
    CHECK_INT(weft_prepare_extras(w.prepare)->imex_channel_count, 0);
    put_file("/dev/nvidia-caps-imex-channels/channel3");
    weft_prepare_again(w.prepare);
    CHECK_INT(weft_prepare_extras(w.prepare)->imex_channel_count, 1);
    CHECK(weft_prepare_extras(w.prepare)->cdi[WEFT_EXTRA_IMEX]);
    CHECK_INT(unlink(below("/dev/nvidia-caps-imex-channels/channel3")), 0);
    w.options.respond.imex_required = true;
    weft_prepare_again(w.prepare);
    CHECK_STR(reason_of(&w), "/dev/nvidia-caps-imex-channels/channel3 is not there, and required");
    w.options.respond.strategies = WEFT_RESPOND_ENVVAR;
    w.options.respond.imex_channel_count = 0;
    weft_prepare_again(w.prepare);
    CHECK_STR(reason_of(&w), "healthy");
    CHECK_INT(weft_prepare_extras(w.prepare)->node_count, 0);
    world_down(&w);
}

/* ---- without memory ---- */

static int make_all(struct weft_driver_files *files, struct weft_extras *extras,
                    struct weft_machine *m, struct weft_buf *buf)
{
    static const struct weft_respond_settings settings = {
        .gds = true, .imex_channels = {7}, .imex_channel_count = 1};
    int rc = weft_driver_files_find(root, "", "550.54.15", files, NULL);
    rc = rc < 0 ? rc : weft_extras_find(&settings, root, extras, NULL, NULL);
    const struct weft_cdi cdi = {
        .machine = m, .settings = &settings, .extras = extras, .files = files, .hook = "/h"};
    rc = rc < 0 ? rc : weft_cdi_write_devices(&cdi, buf, NULL);
    return rc < 0 ? rc : weft_cdi_write_extra(&cdi, WEFT_EXTRA_IMEX, buf);
}

static void no_allocation_is_missed(void)
{
    new_root("memory");
    put_driver();
    put_file("/dev/nvidia-caps-imex-channels/channel7");
    put_file("/dev/nvidia-fs0");
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia");
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
           {"the driver is mounted", the_driver_is_mounted},
           {"a device that cannot be let in is named", a_device_that_cannot_be_let_in_is_named},
           {"features are found and written", features_are_found_and_written},
           {"features of a driver container", features_of_a_driver_container},
           {"the driver's files are found", the_drivers_files_are_found},
           {"files are whole and go when told", files_are_whole_and_go_when_told},
           {"nothing is written without need", nothing_is_written_without_need},
           {"a file is there before its devices", a_file_is_there_before_its_devices},
           {"a removed file is written again", a_removed_file_is_written_again},
           {"new options are made ready", new_options_are_made_ready},
           {"no allocation is missed", no_allocation_is_missed})
