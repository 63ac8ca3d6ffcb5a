/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/unit/ctl_run.h"

#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 16 };

void ctl_result_done(struct ctl_result *result)
{
    free(result->out);
    free(result->err);
}

struct ctl_result ctl_run(int (*verb)(int argc, char **argv, FILE *out, FILE *err),
                          const char *name, const char *args)
{
    struct ctl_result r = {.status = -1};
    char first[32];
    char words[512];
    char *argv[ARGS_MAX] = {first};
    int argc = 1;
    size_t out_len = 0;
    size_t err_len = 0;
    char *save = NULL;
    (void)snprintf(first, sizeof(first), "%s", name);
    (void)snprintf(words, sizeof(words), "%s", args);
    for (char *w = strtok_r(words, " ", &save); w != NULL && argc < ARGS_MAX;
         w = strtok_r(NULL, " ", &save)) {
        argv[argc++] = w;
    }
    FILE *out = open_memstream(&r.out, &out_len);
    FILE *err = open_memstream(&r.err, &err_len);
    if (out != NULL && err != NULL) {
        r.status = verb(argc, argv, out, err);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    if (err != NULL) {
        (void)fclose(err);
    }
    return r;
}
