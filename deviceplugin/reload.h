/* SPDX-License-Identifier: Apache-2.0 */
/* Options that change while the plugin runs: the config file is watched, and read again with the
 * flags and the environment of the start. New ones are used whole or not at all: a file that is not
 * understood, that asks for something only a start can do, or that does not go with the machine
 * leaves the last good options in force, and is named. Loop thread; reads the file there. */
#ifndef WEFT_DEVICEPLUGIN_RELOAD_H
#define WEFT_DEVICEPLUGIN_RELOAD_H

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_loop;
struct weft_options;
struct weft_reload;
struct weft_stats;

/* How the program was called. */
struct weft_command {
    int argc;
    char *const *argv;
    char *(*env)(const char *name); /* getenv */
};

struct weft_reload_options {
    struct weft_loop *loop;
    struct weft_command command;
    /* In force: the struct stays where it is, its content is replaced. */
    struct weft_options *options;
    /* Options has new content. -errno: it is put back as it was, and this runs again. */
    int (*apply)(void *data, struct weft_error *err);
    void *data;
    struct weft_stats *stats; /* counted into */
};

/* -ENOMEM. A file that cannot be watched is looked at every half minute. */
int weft_reload_new(const struct weft_reload_options *options, struct weft_reload **ret_reload,
                    struct weft_error *err) __attribute__((warn_unused_result));
void weft_reload_free(struct weft_reload *reload);
WEFT_DEFINE_AUTO(struct weft_reload, weft_reload_free)

/* Reads the file now. */
void weft_reload_now(struct weft_reload *reload);

#endif
