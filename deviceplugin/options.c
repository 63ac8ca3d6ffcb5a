/* SPDX-License-Identifier: Apache-2.0 */
/* Flags and environment. Both are one table: a name, a variable, and what it sets. */
#include "deviceplugin/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"

enum { RESOURCE_NAME_MAX = 63 };

static const struct {
    const char *flag, *variable;
    enum weft_option option;
} names[] = {
    {"--machine", "WEFT_MACHINE", WEFT_OPTION_MACHINE},
    {"--resource", "WEFT_RESOURCE", WEFT_OPTION_RESOURCE},
    {"--plugin-dir", "WEFT_PLUGIN_DIR", WEFT_OPTION_PLUGIN_DIR},
    {"--config", "WEFT_CONFIG", WEFT_OPTION_CONFIG},
    {"--allocation-policy", "WEFT_ALLOCATION_POLICY", WEFT_OPTION_POLICY},
    {"--log-format", "WEFT_LOG_FORMAT", WEFT_OPTION_LOG_FORMAT},
    {"--log-level", "WEFT_LOG_LEVEL", WEFT_OPTION_LOG_LEVEL},
};

bool weft_resource_valid(const char *name)
{
    const char *slash = strchr(name, '/');
    if (slash == NULL || slash == name) {
        return false;
    }
    const struct weft_str domain = {name, (size_t)(slash - name)};
    weft_autofree char *copy = weft_strndup(name, domain.len);
    if (copy == NULL || !weft_dns_subdomain_valid(copy) || weft_str_eq(domain, "kubernetes.io") ||
        weft_str_ends(domain, ".kubernetes.io")) {
        return false;
    }
    const struct weft_str rest = weft_str(slash + 1);
    bool valid = rest.len > 0 && rest.len <= RESOURCE_NAME_MAX;
    for (size_t i = 0; i < rest.len && valid; i++) {
        const char c = rest.data[i];
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        const bool inside = i > 0 && i + 1 < rest.len;
        valid = word || (inside && (c == '-' || c == '_' || c == '.'));
    }
    return valid;
}

static int set_text(char **field, const char *value, struct weft_error *err)
{
    char *copy = weft_strdup(value);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(*field);
    *field = copy;
    return 0;
}

static int set_word(struct weft_options *options, enum weft_option option, const char *value)
{
    switch (option) {
    case WEFT_OPTION_POLICY:
        return weft_policy_parse(value, &options->policy);
    case WEFT_OPTION_LOG_FORMAT:
        return weft_log_parse_format(value, &options->log_format);
    case WEFT_OPTION_LOG_LEVEL:
        return weft_log_parse_level(value, &options->log_level);
    case WEFT_OPTION_MACHINE:
    case WEFT_OPTION_RESOURCE:
    case WEFT_OPTION_PLUGIN_DIR:
    case WEFT_OPTION_CONFIG:
    case WEFT_OPTION_COUNT:
        break;
    }
    return -EINVAL;
}

int weft_option_set(struct weft_options *options, enum weft_option option, const char *value,
                    struct weft_error *err)
{
    static const char *const allowed[WEFT_OPTION_COUNT] = {
        [WEFT_OPTION_RESOURCE] = "a resource name like nvidia.com/gpu",
        [WEFT_OPTION_POLICY] = "performance or packed",
        [WEFT_OPTION_LOG_FORMAT] = "logfmt or json",
        [WEFT_OPTION_LOG_LEVEL] = "debug, info, warn or error",
    };
    char **const texts[WEFT_OPTION_COUNT] = {
        [WEFT_OPTION_MACHINE] = &options->machine,
        [WEFT_OPTION_RESOURCE] = &options->resource,
        [WEFT_OPTION_PLUGIN_DIR] = &options->plugin_dir,
        [WEFT_OPTION_CONFIG] = &options->config,
    };
    if (texts[option] == NULL ? set_word(options, option, value) < 0
                              : option == WEFT_OPTION_RESOURCE && !weft_resource_valid(value)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "\"%.100s\" is not %s", value,
                            allowed[option]);
    }
    if (texts[option] != NULL && value[0] == '\0') {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "the value is empty");
    }
    return texts[option] != NULL ? set_text(texts[option], value, err) : 0;
}

static int set_defaults(struct weft_options *options, struct weft_error *err)
{
    *options = (struct weft_options){.policy = WEFT_POLICY_PERFORMANCE,
                                     .log_format = WEFT_LOG_LOGFMT,
                                     .log_level = WEFT_LOG_INFO};
    const int rc = set_text(&options->resource, "nvidia.com/gpu", err);
    return rc < 0 ? rc : set_text(&options->plugin_dir, WEFT_KUBELET_PLUGIN_DIR, err);
}

/* argv[*at] as "--flag value" or "--flag=value"; moves *at past it. */
static int flag_of(int argc, char **argv, int *at, size_t *ret_index, const char **ret_value,
                   struct weft_error *err)
{
    const char *arg = argv[*at];
    const size_t len = strcspn(arg, "=");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (strlen(names[i].flag) != len || strncmp(arg, names[i].flag, len) != 0) {
            continue;
        }
        *ret_index = i;
        if (arg[len] == '=') {
            *ret_value = arg + len + 1;
        } else if (*at + 1 < argc) {
            *ret_value = argv[++*at];
        } else {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s needs a value", arg);
        }
        (*at)++;
        return 0;
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unknown argument %.100s", arg);
}

static int read_flags(int argc, char **argv, const char **values, struct weft_options *options,
                      struct weft_error *err)
{
    for (int at = 1; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            options->help = true;
            at++;
        } else if (strcmp(argv[at], "--version") == 0) {
            options->version = true;
            at++;
        } else {
            size_t index = 0;
            const char *value = NULL;
            const int rc = flag_of(argc, argv, &at, &index, &value, err);
            if (rc < 0) {
                return rc;
            }
            values[index] = value;
        }
    }
    return 0;
}

static int read_file(const char *path, struct weft_options *options, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_CONFIG_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_options_apply_file(text, len, path, options, err);
}

int weft_options_read(int argc, char **argv, char *(*env)(const char *name),
                      struct weft_options *ret_options, struct weft_error *err)
{
    weft_auto(weft_options_done) struct weft_options options;
    const char *flags[WEFT_ARRAY_LEN(names)] = {NULL};
    const char *config = NULL;
    int rc = set_defaults(&options, err);
    rc = rc == 0 ? read_flags(argc, argv, flags, &options, err) : rc;
    const bool ask_only = options.help || options.version;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names) && rc == 0 && !ask_only; i++) {
        if (names[i].option == WEFT_OPTION_CONFIG) {
            config = flags[i] != NULL ? flags[i] : env(names[i].variable);
        }
    }
    rc = rc == 0 && config != NULL ? read_file(config, &options, err) : rc;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names) && rc == 0 && !ask_only; i++) {
        const char *value = flags[i] != NULL ? flags[i] : env(names[i].variable);
        if (value != NULL) {
            rc = weft_option_set(&options, names[i].option, value, err);
            rc = rc < 0 ? weft_err_wrap(err, rc, "%s",
                                        flags[i] != NULL ? names[i].flag : names[i].variable)
                        : 0;
        }
    }
    if (rc == 0 && !ask_only && options.machine == NULL) {
        rc = weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--machine FILE is needed");
    }
    if (rc == 0) {
        *ret_options = options;
        options = (struct weft_options){0};
    }
    return rc;
}

void weft_options_done(struct weft_options *options)
{
    weft_free(weft_steal(&options->machine));
    weft_free(weft_steal(&options->resource));
    weft_free(weft_steal(&options->plugin_dir));
    weft_free(weft_steal(&options->config));
}
