/* SPDX-License-Identifier: Apache-2.0 */
/* Flags and environment, and which of all wins. */
#include "deviceplugin/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"

enum { OPTIONS_MAX = 128 /* rows of the table that one command line is matched with */ };

/* A value as it was given, and by which name. */
struct given {
    const char *name, *value;
};

static int set_defaults(struct weft_options *options, struct weft_error *err)
{
    *options = (struct weft_options){0};
    weft_health_settings_init(&options->health);
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (option->fallback != NULL && option->kind != WEFT_OPTION_IGNORED) {
            const int rc = weft_option_set(options, option, option->fallback, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* ---- flags ---- */

/* The option whose flag the first len bytes of arg are, and that flag's own text. */
static const struct weft_option *find_flag(const char *arg, size_t len, const char **ret_name)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        for (size_t k = 0; k < WEFT_OPTION_NAMES && weft_option_table[i].flags[k] != NULL; k++) {
            const char *name = weft_option_table[i].flags[k];
            if (strlen(name) == len && strncmp(arg, name, len) == 0) {
                *ret_name = name;
                return &weft_option_table[i];
            }
        }
    }
    return NULL;
}

/* A flag that is true where it stands alone, as NVIDIA's are. */
static bool is_switch(const struct weft_option *option)
{
    return option->kind == WEFT_OPTION_BOOL ||
           (option->kind == WEFT_OPTION_IGNORED && option->words != NULL &&
            strcmp(option->words[0], "true") == 0);
}

/* argv[*at] as "--flag value", "--flag=value" or "--switch"; moves *at past it. */
static int read_flag(int argc, char *const *argv, int *at, struct given *flags,
                     struct weft_error *err)
{
    const char *arg = argv[(*at)++];
    const size_t len = strcspn(arg, "=");
    struct given given = {0};
    const struct weft_option *option = find_flag(arg, len, &given.name);
    if (option == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unknown argument %.100s", arg);
    }
    if (arg[len] == '=') {
        given.value = arg + len + 1;
    } else if (is_switch(option)) {
        given.value = "true";
    } else if (*at < argc) {
        given.value = argv[(*at)++];
    } else {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s needs a value", arg);
    }
    struct given *place = &flags[option - weft_option_table];
    if (place->name == given.name) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s stands there twice%s", given.name,
                            option->kind == WEFT_OPTION_WORDS ? ": a list has commas" : "");
    }
    if (place->name != NULL) { /* one thing under two names: a contradiction waiting to happen */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s and %s say the same thing",
                            place->name, given.name);
    }
    *place = given;
    return 0;
}

static int read_flags(int argc, char *const *argv, struct given *flags,
                      struct weft_options *options, struct weft_error *err)
{
    for (int at = 1; at < argc;) {
        const char *arg = argv[at];
        bool *asked = strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0 ? &options->help
                      : strcmp(arg, "--version") == 0                      ? &options->version
                      : strcmp(arg, "--validate") == 0                     ? &options->validate
                      : strcmp(arg, "--uninstall") == 0                    ? &options->uninstall
                                                                           : NULL;
        if (asked != NULL) {
            *asked = true;
            at++;
            continue;
        }
        const int rc = read_flag(argc, argv, &at, flags, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- environment ---- */

/* An empty variable is how a pod spec says "nothing" where NVIDIA's programs read it; ours must
 * mean something. */
static bool says_something(const char *variable, const char *value)
{
    return value != NULL && (value[0] != '\0' || strncmp(variable, "WEFT_", 5) == 0);
}

static struct given from_environment(const struct weft_option *option,
                                     char *(*env)(const char *name))
{
    for (size_t i = 0; i < WEFT_OPTION_NAMES && option->variables[i] != NULL; i++) {
        const char *value = env(option->variables[i]);
        if (says_something(option->variables[i], value)) {
            return (struct given){option->variables[i], value};
        }
    }
    return (struct given){0};
}

/* ---- all together ---- */

static int read_file(const char *path, struct weft_options *options, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    /* it is read again when it changes, but for one look also a pipe will do */
    const int rc = options->validate
                       ? weft_file_read(path, WEFT_CONFIG_MAX, &text, &len, err)
                       : weft_file_read_regular(path, WEFT_CONFIG_MAX, &text, &len, err);
    if (rc < 0) {
        return rc == -EINVAL ? -EBADMSG : rc;
    }
    /* what stands in a file is no wrong use of the command line */
    const int applied = weft_options_apply_file(text, len, path, options, err);
    return applied == -EINVAL ? -EBADMSG : applied;
}

/* Two rows may have one field (--plugin-dir, --kubelet-socket): a flag for it beats any variable.
 */
static bool flagged(const struct given *flags, const struct weft_option *option)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        if (flags[i].name != NULL && option->kind != WEFT_OPTION_IGNORED &&
            weft_option_table[i].kind != WEFT_OPTION_IGNORED &&
            weft_option_table[i].offset == option->offset) {
            return true;
        }
    }
    return false;
}

static int apply_values(const struct given *flags, char *(*env)(const char *name),
                        struct weft_options *options, struct weft_error *err)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        struct given given = flags[i];
        if (given.name == NULL && !flagged(flags, option)) {
            given = from_environment(option, env);
        }
        const size_t notes = options->note_count;
        const int rc = given.name != NULL ? weft_option_set(options, option, given.value, err) : 0;
        if (rc < 0) {
            return weft_err_wrap(err, rc, "%s", given.name);
        }
        if (options->note_count > notes) { /* the note gets the name it was said by */
            char *note = weft_asprintf("%s: %s", given.name, options->notes[notes]);
            if (note == NULL) {
                return weft_err_nomem(err);
            }
            weft_free(options->notes[notes]);
            options->notes[notes] = note;
        }
    }
    return 0;
}

/* The lists of error codes add up: they can be put together when all are known. */
static int finish(struct weft_options *options, struct weft_error *err)
{
    struct weft_health_settings *health = &options->health;
    int rc = options->ignored_errors != NULL
                 ? weft_health_set_ignored(health, options->ignored_errors, err)
                 : 0;
    if (rc == 0 && options->health_disabled != NULL) {
        rc = weft_health_set_disabled(health, options->health_disabled, err);
    }
    if (rc == 0 && options->health_enabled != NULL) {
        rc = weft_health_set_enabled(health, options->health_enabled, err);
    }
    return rc;
}

static int apply_all(const struct given *flags, char *(*env)(const char *name),
                     struct weft_options *options, struct weft_error *err)
{
    struct given config = {0};
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (option->offset == offsetof(struct weft_options, config) &&
            option->kind == WEFT_OPTION_TEXT) {
            config = flags[i].name != NULL ? flags[i] : from_environment(option, env);
        }
    }
    if (config.value != NULL && config.value[0] == '\0') {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: \"\" is not a path", config.name);
    }
    int rc = config.value != NULL ? read_file(config.value, options, err) : 0;
    rc = rc == 0 ? apply_values(flags, env, options, err) : rc;
    return rc == 0 ? finish(options, err) : rc;
}

int weft_options_read(int argc, char *const *argv, char *(*env)(const char *name),
                      struct weft_options *ret_options, struct weft_error *err)
{
    weft_auto(weft_options_done) struct weft_options options = {0};
    struct given flags[OPTIONS_MAX] = {0};
    int rc = weft_option_count <= OPTIONS_MAX ? set_defaults(&options, err) : -EFBIG;
    rc = rc == 0 ? read_flags(argc, argv, flags, &options, err) : rc;
    if (rc == 0 && !options.help && !options.version) {
        rc = apply_all(flags, env, &options, err);
    }
    if (rc == 0) {
        *ret_options = options;
        options = (struct weft_options){0};
    }
    return rc;
}
