/* SPDX-License-Identifier: Apache-2.0 */
/* Flags and environment. Both are one table: a name, a variable, and what it sets. */
#include "deviceplugin/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/http/http.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/machine/discover.h"

enum {
    RESOURCE_NAME_MAX = 63,
    DOMAIN_MAX = 253,
    SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1,
    PLUGIN_DIR_MAX = SOCKET_PATH_MAX - sizeof("/" WEFT_KUBELET_SOCKET) + 1
};

#define DURATION_MIN_NS (10 * WEFT_NS_PER_MS)
#define DURATION_MAX_NS (3600 * WEFT_NS_PER_S)

static const struct {
    const char *flag, *variable;
    enum weft_option option;
} names[] = {
    {"--machine", "WEFT_MACHINE", WEFT_OPTION_MACHINE},
    {"--resource", "WEFT_RESOURCE", WEFT_OPTION_RESOURCE},
    {"--plugin-dir", "WEFT_PLUGIN_DIR", WEFT_OPTION_PLUGIN_DIR},
    {"--config", "WEFT_CONFIG", WEFT_OPTION_CONFIG},
    {"--listen", "WEFT_LISTEN", WEFT_OPTION_LISTEN},
    {"--host-root", "WEFT_HOST_ROOT", WEFT_OPTION_HOST_ROOT},
    {"--driver-root", "WEFT_DRIVER_ROOT", WEFT_OPTION_DRIVER_ROOT},
    {"--vendor", "WEFT_VENDOR", WEFT_OPTION_VENDOR},
    {"--ignored-errors", "WEFT_IGNORED_ERRORS", WEFT_OPTION_IGNORED_ERRORS},
    {"--driver-timeout", "WEFT_DRIVER_TIMEOUT", WEFT_OPTION_DRIVER_TIMEOUT},
    {"--rescan", "WEFT_RESCAN", WEFT_OPTION_RESCAN},
    {"--allocation-policy", "WEFT_ALLOCATION_POLICY", WEFT_OPTION_POLICY},
    {"--partitions", "WEFT_PARTITIONS", WEFT_OPTION_PARTITIONS},
    {"--mig-strategy", "MIG_STRATEGY", WEFT_OPTION_PARTITIONS}, /* as NVIDIA's plugin has it */
    {"--shared-devices-allocation-policy", "SHARED_DEVICES_ALLOCATION_POLICY", WEFT_OPTION_SHARING},
    {"--log-format", "WEFT_LOG_FORMAT", WEFT_OPTION_LOG_FORMAT},
    {"--log-level", "WEFT_LOG_LEVEL", WEFT_OPTION_LOG_LEVEL},
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What the kubelet calls a qualified name: words, with - _ . between them. */
static bool name_valid(struct weft_str name)
{
    if (name.len == 0 || name.len > RESOURCE_NAME_MAX || !is_word(name.data[0]) ||
        !is_word(name.data[name.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.data[i];
        if (!is_word(c) && c != '-' && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

bool weft_resource_valid(const char *name)
{
    char domain[DOMAIN_MAX + 1];
    const char *slash = strchr(name, '/');
    if (slash == NULL || slash - name > DOMAIN_MAX) {
        return false;
    }
    memcpy(domain, name, (size_t)(slash - name));
    domain[slash - name] = '\0';
    const struct weft_str d = weft_str(domain);
    return weft_dns_subdomain_valid(domain) && !weft_str_eq(d, "kubernetes.io") &&
           !weft_str_ends(d, ".kubernetes.io") && name_valid(weft_str(slash + 1));
}

const char *weft_resource_of_vendor(const char *vendor)
{
    static const char *const resources[][2] = {
        {"amd", "amd.com/gpu"}, {"intel", "gpu.intel.com/i915"}, {"mthreads", "mthreads.com/gpu"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(resources); i++) {
        if (strcmp(resources[i][0], vendor) == 0) {
            return resources[i][1];
        }
    }
    return "nvidia.com/gpu";
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

/* A time that a person would wait, or have a loop turn. */
static int set_duration(int64_t *field, const char *value)
{
    int64_t ns = 0;
    const int rc = weft_parse_duration(weft_str(value), &ns);
    if (rc < 0 || ns < DURATION_MIN_NS || ns > DURATION_MAX_NS) {
        return -EINVAL;
    }
    *field = ns;
    return 0;
}

static bool vendor_known(const char *vendor)
{
    for (size_t i = 0; weft_backends[i] != NULL; i++) {
        if (strcmp(weft_backends[i]->vendor, vendor) == 0) {
            return true;
        }
    }
    return false;
}

/* XID numbers with commas between them; none at all is a list too. */
static bool numbers_valid(const char *list)
{
    struct weft_str rest = weft_str(list), piece;
    uint64_t number = 0;
    while (rest.len > 0 && weft_str_split(&rest, ',', &piece)) {
        if (weft_parse_u64(weft_str_trim(piece), UINT32_MAX, &number) < 0) {
            return false;
        }
    }
    return true;
}

static int set_word(struct weft_options *options, enum weft_option option, const char *value)
{
    switch (option) {
    case WEFT_OPTION_DRIVER_TIMEOUT:
        return set_duration(&options->driver_timeout_ns, value);
    case WEFT_OPTION_RESCAN:
        return set_duration(&options->rescan_ns, value);
    case WEFT_OPTION_POLICY:
        return weft_policy_parse(value, &options->policy);
    case WEFT_OPTION_PARTITIONS:
        return weft_partitions_parse(value, &options->pools.partitions);
    case WEFT_OPTION_SHARING:
        return weft_sharing_parse(value, &options->pools.sharing);
    case WEFT_OPTION_LOG_FORMAT:
        return weft_log_parse_format(value, &options->log_format);
    case WEFT_OPTION_LOG_LEVEL:
        return weft_log_parse_level(value, &options->log_level);
    case WEFT_OPTION_MACHINE:
    case WEFT_OPTION_RESOURCE:
    case WEFT_OPTION_PLUGIN_DIR:
    case WEFT_OPTION_CONFIG:
    case WEFT_OPTION_LISTEN:
    case WEFT_OPTION_HOST_ROOT:
    case WEFT_OPTION_DRIVER_ROOT:
    case WEFT_OPTION_VENDOR:
    case WEFT_OPTION_IGNORED_ERRORS:
    case WEFT_OPTION_COUNT:
        break;
    }
    return -EINVAL;
}

static char **text_field(struct weft_options *options, enum weft_option option)
{
    switch (option) {
    case WEFT_OPTION_MACHINE:
        return &options->machine;
    case WEFT_OPTION_RESOURCE:
        return &options->pools.resource;
    case WEFT_OPTION_PLUGIN_DIR:
        return &options->plugin_dir;
    case WEFT_OPTION_CONFIG:
        return &options->config;
    case WEFT_OPTION_LISTEN:
        return &options->listen;
    case WEFT_OPTION_HOST_ROOT:
        return &options->host_root;
    case WEFT_OPTION_DRIVER_ROOT:
        return &options->driver_root;
    case WEFT_OPTION_VENDOR:
        return &options->vendor;
    case WEFT_OPTION_IGNORED_ERRORS:
        return &options->ignored_errors;
    case WEFT_OPTION_DRIVER_TIMEOUT:
    case WEFT_OPTION_RESCAN:
    case WEFT_OPTION_POLICY:
    case WEFT_OPTION_PARTITIONS:
    case WEFT_OPTION_SHARING:
    case WEFT_OPTION_LOG_FORMAT:
    case WEFT_OPTION_LOG_LEVEL:
    case WEFT_OPTION_COUNT:
        break;
    }
    return NULL;
}

static bool text_valid(enum weft_option option, const char *value)
{
    return option == WEFT_OPTION_RESOURCE         ? weft_resource_valid(value)
           : option == WEFT_OPTION_VENDOR         ? vendor_known(value)
           : option == WEFT_OPTION_IGNORED_ERRORS ? numbers_valid(value)
                                                  : value[0] != '\0';
}

int weft_option_set(struct weft_options *options, enum weft_option option, const char *value,
                    struct weft_error *err)
{
    static const char *const allowed[WEFT_OPTION_COUNT] = {
        [WEFT_OPTION_MACHINE] = "a path",
        [WEFT_OPTION_RESOURCE] = "a resource name like nvidia.com/gpu",
        [WEFT_OPTION_PLUGIN_DIR] = "a path",
        [WEFT_OPTION_CONFIG] = "a path",
        [WEFT_OPTION_LISTEN] = "an address",
        [WEFT_OPTION_HOST_ROOT] = "a path",
        [WEFT_OPTION_DRIVER_ROOT] = "a path",
        [WEFT_OPTION_VENDOR] = "a vendor whose driver can be asked (nvidia, amd, …)",
        [WEFT_OPTION_IGNORED_ERRORS] = "a list of XID numbers like 13,31",
        [WEFT_OPTION_DRIVER_TIMEOUT] = "a time from 10ms to 1h",
        [WEFT_OPTION_RESCAN] = "a time from 10ms to 1h",
        [WEFT_OPTION_POLICY] = "performance or packed",
        [WEFT_OPTION_PARTITIONS] = "auto, none, single or mixed",
        [WEFT_OPTION_SHARING] = "distributed or packed",
        [WEFT_OPTION_LOG_FORMAT] = "logfmt or json",
        [WEFT_OPTION_LOG_LEVEL] = "debug, info, warn or error",
    };
    char **text = text_field(options, option);
    const bool valid =
        text != NULL ? text_valid(option, value) : set_word(options, option, value) == 0;
    if (valid && option == WEFT_OPTION_PLUGIN_DIR && strlen(value) > PLUGIN_DIR_MAX) {
        return weft_err_set(err, -ENAMETOOLONG, WEFT_ERR_CONFIG,
                            "%zu bytes are too long for a folder with " WEFT_KUBELET_SOCKET
                            ", at most %zu: a unix socket's path has %zu at most",
                            strlen(value), (size_t)PLUGIN_DIR_MAX, (size_t)SOCKET_PATH_MAX);
    }
    if (!valid) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "\"%.100s\" is not %s", value,
                            option < WEFT_OPTION_COUNT ? allowed[option] : "known");
    }
    const int rc = option == WEFT_OPTION_LISTEN ? weft_http_check_listen(value, err) : 0;
    return rc == 0 && text != NULL ? set_text(text, value, err) : rc;
}

static int set_defaults(struct weft_options *options, struct weft_error *err)
{
    *options = (struct weft_options){.policy = WEFT_POLICY_PERFORMANCE,
                                     .log_format = WEFT_LOG_LOGFMT,
                                     .log_level = WEFT_LOG_INFO,
                                     .driver_timeout_ns = 10 * WEFT_NS_PER_S,
                                     .rescan_ns = 30 * WEFT_NS_PER_S};
    return set_text(&options->plugin_dir, WEFT_KUBELET_PLUGIN_DIR, err);
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
            if (values[index] != NULL) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s stands there twice",
                                    names[index].flag);
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
    if (rc < 0) {
        return rc;
    }
    /* what stands in a file is no wrong use of the command line */
    const int applied = weft_options_apply_file(text, len, path, options, err);
    return applied == -EINVAL ? -EBADMSG : applied;
}

/* One thing said under two names, in one place, is a contradiction waiting to happen. */
static int check_once(const char *const *flags, struct weft_error *err)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        for (size_t k = i + 1; k < WEFT_ARRAY_LEN(names); k++) {
            if (flags[i] != NULL && flags[k] != NULL && names[i].option == names[k].option) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s and %s say the same thing",
                                    names[i].flag, names[k].flag);
            }
        }
    }
    return 0;
}

/* Is the option given by a flag, under whatever name? */
static bool flagged(const char *const *flags, enum weft_option option)
{
    bool given = false;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        given = given || (flags[i] != NULL && names[i].option == option);
    }
    return given;
}

/* Sets everything that has a value, all but the file. */
static int apply_values(const char *const *flags, char *(*env)(const char *name),
                        struct weft_options *options, struct weft_error *err)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        const char *value = flags[i];
        if (value == NULL && !flagged(flags, names[i].option)) {
            value = env(names[i].variable);
        }
        const int rc = value != NULL ? weft_option_set(options, names[i].option, value, err) : 0;
        if (rc < 0) {
            return weft_err_wrap(err, rc, "%s",
                                 flags[i] != NULL ? names[i].flag : names[i].variable);
        }
    }
    return 0;
}

static int apply_all(const char *const *flags, char *(*env)(const char *name),
                     struct weft_options *options, struct weft_error *err)
{
    const char *config = NULL;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (names[i].option == WEFT_OPTION_CONFIG) {
            config = flags[i] != NULL ? flags[i] : env(names[i].variable);
        }
    }
    int rc = config != NULL ? read_file(config, options, err) : 0;
    return rc == 0 ? apply_values(flags, env, options, err) : rc;
}

int weft_options_read(int argc, char **argv, char *(*env)(const char *name),
                      struct weft_options *ret_options, struct weft_error *err)
{
    weft_auto(weft_options_done) struct weft_options options = {0};
    const char *flags[WEFT_ARRAY_LEN(names)] = {NULL};
    int rc = set_defaults(&options, err);
    rc = rc == 0 ? read_flags(argc, argv, flags, &options, err) : rc;
    rc = rc == 0 ? check_once(flags, err) : rc;
    if (rc == 0 && !options.help && !options.version) {
        rc = apply_all(flags, env, &options, err);
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
    weft_pool_settings_done(&options->pools);
    weft_free(weft_steal(&options->plugin_dir));
    weft_free(weft_steal(&options->config));
    weft_free(weft_steal(&options->listen));
    weft_free(weft_steal(&options->host_root));
    weft_free(weft_steal(&options->driver_root));
    weft_free(weft_steal(&options->vendor));
    weft_free(weft_steal(&options->ignored_errors));
}
