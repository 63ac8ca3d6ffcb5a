/* SPDX-License-Identifier: Apache-2.0 */
/* weft-device-plugin: advertises a machine's accelerators to the kubelet and hands them out in
 * well-connected sets. This file: the program's face to its user. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "deviceplugin/options.h"
#include "deviceplugin/plugin.h"
#include "pkg/base/log.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "weft-device-plugin advertises a machine's accelerators to the kubelet and hands out sets of\n"
    "them that are well connected.\n"
    "\n"
    "  --machine FILE             a recorded machine instead of asking the driver: weft JSON\n"
    "                             (hack/record-machine), or what weftctl machine reads; with a\n"
    "                             bare matrix pods get no GPU\n"
    "  --vendor V                 ask only this vendor's driver (nvidia, amd, ...)\n"
    "  --host-root DIR            where the host's /dev, /proc and /sys are seen (/)\n"
    "  --driver-root DIR          where the driver's libraries are, if in a container of its own\n"
    "  --ignored-errors LIST      XIDs that are no fault of a GPU (13,31,43,45,68,109)\n"
    "  --driver-timeout D         how long a call into the driver may take (10s)\n"
    "  --rescan D                 how often to look again for what events do not tell (30s)\n"
    "  --resource NAME            what to advertise (by vendor: nvidia.com/gpu, amd.com/gpu...)\n"
    "  --plugin-dir DIR           the kubelet's folder (/var/lib/kubelet/device-plugins)\n"
    "  --allocation-policy P      performance (default) or packed\n"
    "  --partitions S             none, single or mixed, as NVIDIA's --mig-strategy, which is\n"
    "                             read too (auto: none for NVIDIA, one resource for others)\n"
    "  --shared-devices-allocation-policy P  distributed (default) or packed\n"
    "  --config FILE              kind DevicePluginConfig, or NVIDIA's version: v1\n"
    "  --listen ADDRESS:PORT      /metrics, /livez, /readyz, /debug/allocations (off)\n"
    "  --log-format F             logfmt (default) or json\n"
    "  --log-level L              debug, info (default), warn or error\n"
    "  --version, --help\n"
    "\n"
    "Each flag can be given as WEFT_<NAME> in the environment (WEFT_PLUGIN_DIR). Flags win over\n"
    "the environment, the environment over the file. SIGHUP looks at the machine again, SIGTERM "
    "ends.\n"
    "Exit: 0 ended as told, 1 failure, 2 wrong use.\n";

int main(int argc, char **argv)
{
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options options = {0};
    const int rc = weft_options_read(argc, argv, getenv, &options, &err);
    if (rc < 0) {
        const bool usage_wrong = rc == -EINVAL;
        (void)fprintf(stderr, "weft-device-plugin: %s%s\n", err.message,
                      usage_wrong ? " (--help tells more)" : "");
        return usage_wrong ? EXIT_USAGE : EXIT_FAILED;
    }
    if (options.help || options.version) {
        (void)fputs(options.help ? usage : "weft-device-plugin " WEFT_VERSION "\n", stdout);
        return EXIT_OK;
    }
    weft_log_setup(options.log_level, options.log_format, STDERR_FILENO);
    if (weft_plugin_run(&options, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "failed", WEFT_KV_S("reason", err.message));
        return EXIT_FAILED;
    }
    return EXIT_OK;
}
