/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a verb of weftctl in the test's own process and keeps what it prints. */
#ifndef WEFT_TESTS_UNIT_CTL_RUN_H
#define WEFT_TESTS_UNIT_CTL_RUN_H

#include <stdio.h>

#include "pkg/base/mem.h"

struct ctl_result {
    int status;
    char *out, *err; /* owned */
};

void ctl_result_done(struct ctl_result *result);
WEFT_DEFINE_AUTO_VALUE(struct ctl_result, ctl_result_done)

/* Runs the verb, whose name is argv[0], with the words of args. */
struct ctl_result ctl_run(int (*verb)(int argc, char **argv, FILE *out, FILE *err),
                          const char *name, const char *args);

#endif
