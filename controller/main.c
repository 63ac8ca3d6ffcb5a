/* SPDX-License-Identifier: Apache-2.0 */
/* weft-controller: command line in, exit status out. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "controller/controller.h"
#include "controller/options.h"
#include "pkg/base/file.h"

int main(int argc, char *argv[])
{
    struct weft_error err = {0};
    struct weft_options options = {0};
    if (weft_fd_keep_standard() < 0) {
        return 1; /* and nobody to tell it */
    }
    if (weft_options_parse(argc, argv, &options, &err) < 0) {
        (void)fprintf(stderr, "weft-controller: %s\nTry weft-controller --help.\n", err.message);
        return 2;
    }
    if (options.help) {
        (void)fputs(weft_options_usage, stdout);
        return 0;
    }
    if (options.version) {
        (void)puts("weft-controller " WEFT_VERSION);
        return 0;
    }
    /* A pass makes arrays of all nodes and frees them: each is a mapping of its own, which grows
     * without being copied and goes back at once. By default malloc would raise this limit when the
     * first of them is freed, and the heap would keep what a pass needs at its peak. */
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    weft_log_setup(options.log_level, options.log_format, STDERR_FILENO);
    const int rc = options.output != NULL ? weft_controller_output(&options, &err)
                                          : weft_controller_run(&options, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "weft-controller: %s\n", err.message);
        return 1;
    }
    return rc;
}
