/* SPDX-License-Identifier: Apache-2.0 */
/* What is made ready on the host before a machine is advertised, and when it is not. */
#include "deviceplugin/prepare.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/cdi.h"
#include "deviceplugin/offer.h"
#include "deviceplugin/options.h"
#include "pkg/base/file.h"
#include "pkg/loop/loop.h"
#include "tests/unit/cdi_host.h"
#include "tests/unit/unit.h"

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
    cdi_host_new(name);
    w->options.host_root = weft_strdup(cdi_host_root);
    w->options.respond.cdi_folder = weft_strdup(cdi_host_path("/cdi"));
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
    char path[CDI_HOST_PATH]; /* makes no folder */
    (void)snprintf(path, sizeof(path), "%s/cdi/k8s.device-plugin.nvidia.com-gpu.json",
                   cdi_host_root);
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
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
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
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
    CHECK_CONTAINS(reason_of(&w), "no libcuda.so.1 of driver \"550.54.15\"");
    CHECK(!file_there());
    cdi_host_driver();
    cdi_host_put("/cdi"); /* no folder */
    weft_prepare_again(w.prepare);
    CHECK_CONTAINS(reason_of(&w), "cdi");
    CHECK(strstr(reason_of(&w), "healthy") == NULL);
    CHECK_INT(unlink(cdi_host_path("/cdi")), 0);
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
    cdi_host_driver();
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
    const char *path = cdi_host_path("/cdi/k8s.device-plugin.nvidia.com-gpu.json");
    struct stat first = {0}, second = {0}, third = {0};
    CHECK_INT(stat(path, &first), 0);
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
    CHECK_INT(stat(path, &second), 0);
    CHECK(first.st_ino == second.st_ino); /* the same is not written again */
    CHECK_INT(unlink(path), 0);
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
    CHECK_INT(stat(path, &third), 0);
    struct weft_machine *other = cdi_host_machine("nvidia");
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
    cdi_host_driver();
    cdi_host_put("/dev/nvidiactl");
    weft_prepare_use(w.prepare, cdi_host_machine("nvidia"));
    w.options.respond.strategies |= WEFT_RESPOND_CDI_CRI;
    w.options.respond.imex_channels[0] = 3;
    w.options.respond.imex_channel_count = 1;
    weft_prepare_again(w.prepare);
    CHECK(file_there());
    CHECK_STR(reason_of(&w), "healthy"); /* the channel is not required */
    CHECK_INT(weft_prepare_extras(w.prepare)->imex_channel_count, 0);
    cdi_host_put("/dev/nvidia-caps-imex-channels/channel3");
    weft_prepare_again(w.prepare);
    CHECK_INT(weft_prepare_extras(w.prepare)->imex_channel_count, 1);
    CHECK(weft_prepare_extras(w.prepare)->cdi[WEFT_EXTRA_IMEX]);
    CHECK_INT(unlink(cdi_host_path("/dev/nvidia-caps-imex-channels/channel3")), 0);
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

WEFT_SUITE(prepare, {"nothing is written without need", nothing_is_written_without_need},
           {"a file is there before its devices", a_file_is_there_before_its_devices},
           {"a removed file is written again", a_removed_file_is_written_again},
           {"new options are made ready", new_options_are_made_ready})
