/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a verb, and the two ways to say that something went wrong. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"

/* The option that arg names; *ret_value is the text after '=', or NULL. */
static struct weft_ctl_option *find_option(struct weft_ctl_option *options, const char *arg,
                                           const char **ret_value)
{
    for (struct weft_ctl_option *o = options; o->name != NULL; o++) {
        const size_t len = strlen(o->name);
        if (strncmp(arg, o->name, len) == 0 && (arg[len] == '\0' || arg[len] == '=')) {
            *ret_value = arg[len] == '=' ? arg + len + 1 : NULL;
            return o;
        }
    }
    return NULL;
}

int weft_ctl_options(int argc, char **argv, struct weft_ctl_option *options, struct weft_error *err)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            return i + 1 == argc ? 0
                                 : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                                "unknown argument \"%.80s\"", argv[i + 1]);
        }
        const char *value = NULL;
        struct weft_ctl_option *o = find_option(options, argv[i], &value);
        if (o == NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unknown %s \"%.80s\"",
                                argv[i][0] == '-' ? "option" : "argument", argv[i]);
        }
        if (o->values == NULL) {
            if (value != NULL) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s takes no value", o->name);
            }
            o->count = 1;
            continue;
        }
        if (value == NULL && i + 1 == argc) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s needs a value", o->name);
        }
        if (o->count == o->max) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s may be given %zu time%s",
                                o->name, o->max, o->max == 1 ? "" : "s");
        }
        o->values[o->count++] = value != NULL ? value : argv[++i];
    }
    return 0;
}

int weft_ctl_wrong_use(FILE *err, const char *verb, const char *message)
{
    (void)fprintf(err, "weftctl %s: %s; see weftctl help %s\n", verb, message, verb);
    return WEFT_CTL_USAGE;
}

int weft_ctl_fail(FILE *err, const char *verb, const char *message)
{
    (void)fprintf(err, "weftctl %s: %s\n", verb, message);
    return WEFT_CTL_FAILED;
}
