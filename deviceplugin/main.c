/* SPDX-License-Identifier: Apache-2.0 */
/* weft-device-plugin: advertises a machine's accelerators to the kubelet and hands them out in
 * well-connected sets. This file: the program's face to its user. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "deviceplugin/cdi.h"
#include "deviceplugin/feature-file.h"
#include "deviceplugin/options.h"
#include "deviceplugin/plugin.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/reload.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/machine/machine.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "weft-device-plugin advertises a machine's accelerators to the kubelet and hands out sets of\n"
    "them that are well connected.\n"
    "\n";
static const char usage_end[] =
    "  --validate                  check flags and file, print what they come to as a file, end\n"
    "  --uninstall                 remove CDI files and labels, which outlive the plugin, end\n"
    "  --version, --help\n"
    "\n"
    "Most flags can be given as WEFT_<NAME> in the environment (WEFT_PLUGIN_DIR), and NVIDIA's\n"
    "flags and variables are read too (docs/device-plugin.md). Flags win over the environment, "
    "the\n"
    "environment over the file. SIGHUP reads the file and looks at the machine again, as a change\n"
    "of the file does; SIGTERM ends.\n"
    "Exit: 0 ended as told, 1 failure, 2 wrong use.\n";

enum { TEXT_MAX = 1 << 20 };

static int print_help(void)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, TEXT_MAX);
    (void)weft_buf_puts(&text, usage);
    weft_options_help(&text);
    (void)weft_buf_puts(&text, usage_end);
    (void)fputs(weft_buf_text(&text), stdout);
    return text.status == 0 && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

/* Can the recorded machine be read, and advertised with these options? */
static int try_machine(const struct weft_options *options, struct weft_error *err)
{
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    weft_auto(weft_pools_done) struct weft_pools pools = {0};
    int rc = weft_machine_load(options->machine, &machine, err);
    if (rc == 0) {
        rc = weft_pools_plan(machine, &options->pools, &pools, err);
        rc = rc < 0 ? weft_err_wrap(err, rc, "%s", options->machine) : 0;
    }
    return rc;
}

/* What was said and is not done goes beside the file, which stays one that can be read. */
static int print_options(const struct weft_options *options)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < options->note_count; i++) {
        (void)fprintf(stderr, "weft-device-plugin: %s\n", options->notes[i]);
    }
    struct weft_error err = {0};
    if (options->machine != NULL && try_machine(options, &err) < 0) {
        (void)fprintf(stderr, "weft-device-plugin: %s\n", err.message);
        return EXIT_FAILED;
    }
    if (weft_options_write(options, &text) < 0) {
        (void)fputs("weft-device-plugin: out of memory\n", stderr);
        return EXIT_FAILED;
    }
    (void)fputs(weft_buf_text(&text), stdout);
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

/* A node that weft leaves: containers of before that are started again would need the CDI files,
 * and an upgrade must take no label away, so no stop removes them. */
static int uninstall(const struct weft_options *options)
{
    struct weft_error err = {0};
    const char *folder = options->respond.cdi_folder;
    const int removed = weft_cdi_remove(folder != NULL ? folder : WEFT_RESPOND_CDI_FOLDER, &err);
    if (removed < 0) {
        (void)fprintf(stderr, "weft-device-plugin: %s\n", err.message);
        return EXIT_FAILED;
    }
    (void)printf("removed %d CDI file%s\n", removed, removed == 1 ? "" : "s");
    const char *labels = options->labels.file;
    if (labels != NULL && weft_feature_file_remove(labels, &err) < 0) {
        (void)fprintf(stderr, "weft-device-plugin: %s\n", err.message);
        return EXIT_FAILED;
    }
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

static int run(const struct weft_command *command, struct weft_options *options)
{
    struct weft_error err = {0};
    weft_log_setup(options->log_level, options->log_format, STDERR_FILENO);
    for (size_t i = 0; i < options->note_count; i++) {
        weft_log(WEFT_LOG_WARN, "config-note", WEFT_KV_S("note", options->notes[i]));
    }
    bool stuck = false;
    int status = EXIT_OK;
    if (weft_plugin_run(command, options, &stuck, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "failed", WEFT_KV_S("reason", err.message));
        status = EXIT_FAILED;
    }
    if (stuck) {
        /* All of ours is cleaned up. exit() would run the destructors of the vendor's library, or
         * gRPC's, while a thread is inside it, and may wait for a lock that the thread holds, for
         * ever. */
        _exit(status);
    }
    return status;
}

int main(int argc, char **argv)
{
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (weft_fd_keep_standard() < 0) {
        return EXIT_FAILED; /* and nobody to tell it */
    }
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options options = {0};
    const int rc = weft_options_read(argc, argv, getenv, &options, &err);
    if (rc < 0) {
        const bool usage_wrong = rc == -EINVAL;
        (void)fprintf(stderr, "weft-device-plugin: %s%s\n", err.message,
                      usage_wrong ? " (--help tells more)" : "");
        return usage_wrong ? EXIT_USAGE : EXIT_FAILED;
    }
    if (options.version) {
        (void)fputs("weft-device-plugin " WEFT_VERSION "\n", stdout);
        return EXIT_OK;
    }
    const struct weft_command command = {.argc = argc, .argv = argv, .env = getenv};
    return options.help        ? print_help()
           : options.validate  ? print_options(&options)
           : options.uninstall ? uninstall(&options)
                               : run(&command, &options);
}
