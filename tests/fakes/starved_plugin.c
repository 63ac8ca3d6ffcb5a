/* SPDX-License-Identifier: Apache-2.0 */
/* The device plugin with an allocator that fails when told: SIGUSR1 with a number N (sigqueue) lets
 * the Nth allocation from then on fail, that one only; SIGUSR2 prints how many there were since as
 * "count=<n>". STARVE=N in the environment does the former at the start. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "deviceplugin/options.h"
#include "deviceplugin/plugin.h"
#include "deviceplugin/reload.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"

static void on_arm(int signum, siginfo_t *info, void *context)
{
    (void)signum;
    (void)context;
    (void)weft_mem_fail_once((uint64_t)info->si_value.sival_int);
}

static void on_count(int signum)
{
    (void)signum;
    char text[32] = "count=";
    size_t len = sizeof(text);
    text[--len] = '\n';
    for (uint64_t count = weft_mem_fail_once(0); count > 0 || text[len] == '\n'; count /= 10) {
        text[--len] = (char)('0' + count % 10);
    }
    (void)!write(STDOUT_FILENO, text, 6);
    (void)!write(STDOUT_FILENO, text + len, sizeof(text) - len);
}

int main(int argc, char **argv)
{
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    (void)sigaction(
        SIGUSR1, &(struct sigaction){.sa_sigaction = on_arm, .sa_flags = SA_SIGINFO | SA_RESTART},
        NULL);
    (void)sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_count, .sa_flags = SA_RESTART},
                    NULL);
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options options = {0};
    if (weft_options_read(argc, argv, getenv, &options, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    weft_log_setup(options.log_level, options.log_format, STDERR_FILENO);
    const char *starve = getenv("STARVE");
    uint64_t number = 0;
    if (starve != NULL && weft_parse_u64(weft_str(starve), INT32_MAX, &number) == 0) {
        (void)weft_mem_fail_once(number);
    }
    const struct weft_command command = {.argc = argc, .argv = argv, .env = getenv};
    bool stuck = false;
    if (weft_plugin_run(&command, &options, &stuck, &err) < 0) {
        (void)fprintf(stderr, "failed: %s\n", err.message);
        return 1;
    }
    return 0;
}
