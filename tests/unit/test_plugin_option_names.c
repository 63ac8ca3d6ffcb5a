/* SPDX-License-Identifier: Apache-2.0 */
/* Every option by every name it has: flag, variable, our file, NVIDIA's file. A row of the table
 * without a sample here fails, as does one that docs/device-plugin.md does not have. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/options-internal.h"
#include "deviceplugin/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "tests/unit/unit.h"

/* good is another value than the default, as text of a flag; read is how it reads back. */
static const struct sample {
    const char *name; /* first flag, or the name in our file */
    const char *good, *read, *bad;
} samples[] = {
    {"--machine", "/m.json", "/m.json", ""},
    {"--vendor", "amd", "amd", "acme"},
    {"--host-root", "/host", "/host", ""},
    {"--driver-root", "/run/nvidia/driver", "/run/nvidia/driver", ""},
    {"--container-driver-root", "/driver", "/driver", ""},
    {"--dev-root", "/run/nvidia/driver", "/run/nvidia/driver", ""},
    {"--ignored-errors", "13,94", "13,94", "13;94"},
    {"--disable-health-checks", "94", "94", "ninety"},
    {"--enable-health-checks", "109", "109", "-1"},
    {"--health-suspect", "2s", "2s", "2"},
    {"--health-recover", "90s", "90s", "1d"},
    {"--health-flap-count", "5", "5", "many"},
    {"--health-flap-window", "30m", "30m", "0s"},
    {"--health-flap-recover", "5m", "5m", "2h"},
    {"--nic-health-affects-gpu", "true", "true", "maybe"},
    {"--driver-timeout", "500ms", "500ms", "1us"},
    {"--rescan", "1m", "1m", "0s"},
    {"--resource", "a.com/gpu", "a.com/gpu", "gpu"},
    {"--plugin-dir", "/plugins", "/plugins", ""},
    {"--kubelet-socket", "/plugins/kubelet.sock", NULL, "/plugins/other.sock"},
    {"--registration", "watcher", "watcher", "both"},
    {"--registry-dir", "/registry", "/registry", ""},
    {"--allocation-policy", "packed", "packed", "best"},
    {"--partitions", "mixed", "mixed", "all"},
    {"--shared-devices-allocation-policy", "packed", "packed", "fair"},
    {"sharing.renameByDefault", "true", "true", "1"},
    {"sharing.failRequestsGreaterThanOne", "true", "true", "1"},
    {"--device-list-strategy", "cdi-cri,volume-mounts", "volume-mounts,cdi-cri", "cdi"},
    {"--device-id-strategy", "index", "index", "bdf"},
    {"--pass-device-specs", "false", "false", "some"},
    {"--gdrcopy-enabled", "true", "true", "on"},
    {"--gds-enabled", "true", "true", "on"},
    {"--mofed-enabled", "true", "true", "on"},
    {"--cdi-dir", "/etc/cdi", "/etc/cdi", ""},
    {"--cdi-annotation-prefix", "a.com/", "a.com/", ""},
    {"--nvidia-cdi-hook-path", "/usr/bin/nvidia-cdi-hook", "/usr/bin/nvidia-cdi-hook", ""},
    {"--imex-channel-ids", "0", "0", "2048"},
    {"--imex-required", "true", "true", "please"},
    {"--feature-file", "/features.d/weft", "/features.d/weft", ""},
    {"--machine-type-file", "/type", "/type", ""},
    {"--no-timestamp", "true", "true", "never"},
    {"--listen", "127.0.0.1:9420", "127.0.0.1:9420", "nine"},
    {"--log-format", "json", "json", "xml"},
    {"--log-level", "debug", "debug", "loud"},
};

static const char *asked_variable, *asked_value;

static char *one_variable(const char *name)
{
    static char value[256];
    if (asked_variable == NULL || strcmp(name, asked_variable) != 0) {
        return NULL;
    }
    (void)snprintf(value, sizeof(value), "%s", asked_value);
    return value;
}

static const struct sample *sample_of(const struct weft_option *option)
{
    const char *name = option->flags[0] != NULL ? option->flags[0] : option->own;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(samples); i++) {
        if (strcmp(samples[i].name, name) == 0) {
            return &samples[i];
        }
    }
    (void)fprintf(stderr, "no sample for %s\n", name);
    return NULL;
}

/* Is asked about here: not the file itself, nor what decides nothing. */
static bool has_value(const struct weft_option *option)
{
    return option->kind != WEFT_OPTION_IGNORED &&
           option->offset != offsetof(struct weft_options, config);
}

static void check_value(const struct weft_options *o, const struct weft_option *option,
                        const struct sample *sample)
{
    char room[WEFT_OPTION_TEXT_MAX];
    if (sample->read != NULL) {
        CHECK_STR(weft_option_text(o, option, room), sample->read);
    } else {
        CHECK_STR(o->plugin_dir, "/plugins");
    }
}

static int read_one(const char *flag, const char *value, struct weft_options *o,
                    struct weft_error *err)
{
    char program[] = "plugin";
    weft_autofree char *argument = flag != NULL ? weft_asprintf("%s=%s", flag, value) : NULL;
    char *argv[] = {program, argument, NULL};
    return weft_options_read(flag != NULL ? 2 : 1, argv, one_variable, o, err);
}

/* name is a flag, or a variable of the environment. */
static void by_name(const struct weft_option *option, const struct sample *sample, const char *name,
                    bool is_flag)
{
    weft_auto(weft_options_done) struct weft_options o = {0};
    weft_auto(weft_options_done) struct weft_options wrong = {0};
    struct weft_error err = {0};
    asked_variable = is_flag ? NULL : name;
    asked_value = sample->good;
    CHECK_INT(read_one(is_flag ? name : NULL, sample->good, &o, &err), 0);
    CHECK_STR(err.message, "");
    check_value(&o, option, sample);
    asked_value = sample->bad;
    const int rc = read_one(is_flag ? name : NULL, sample->bad, &wrong, &err);
    if (rc == 0) { /* an empty variable of NVIDIA's says nothing */
        CHECK(!is_flag && sample->bad[0] == '\0' && strncmp(name, "WEFT_", 5) != 0);
    } else {
        CHECK_INT(rc, -EINVAL);
        CHECK_CONTAINS(err.message, name);
    }
    asked_variable = NULL;
}

static void by_flags_and_variables(void)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        const struct sample *sample = has_value(option) ? sample_of(option) : NULL;
        CHECK(sample != NULL || !has_value(option));
        for (size_t k = 0; sample != NULL && k < WEFT_OPTION_NAMES; k++) {
            if (option->flags[k] != NULL) {
                by_name(option, sample, option->flags[k], true);
            }
            if (option->variables[k] != NULL) {
                by_name(option, sample, option->variables[k], false);
            }
        }
    }
}

/* "a.b.c" and a value: "a:\n  b:\n    c: <value>\n". */
static char *nested(const char *head, const char *path, const char *value)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    (void)weft_buf_puts(&buf, head);
    for (int depth = 0; *path != '\0'; depth++) {
        const size_t len = strcspn(path, ".");
        (void)weft_buf_printf(&buf, "%*s%.*s:", 2 * depth, "", (int)len, path);
        path += len + (path[len] == '.' ? 1 : 0);
        (void)weft_buf_puts(&buf, *path != '\0' ? "\n" : " ");
    }
    (void)weft_buf_printf(&buf, "%s\n", value);
    return weft_buf_steal(&buf);
}

/* The text as a value of its kind. */
static char *typed(const struct weft_option *option, const char *text)
{
    switch (option->kind) {
    case WEFT_OPTION_BOOL:
    case WEFT_OPTION_NUMBER:
        return weft_strdup(text);
    case WEFT_OPTION_WORDS:
    case WEFT_OPTION_CHANNELS:
        return weft_asprintf("[%s]", text);
    case WEFT_OPTION_TEXT:
    case WEFT_OPTION_DURATION:
    case WEFT_OPTION_WORD:
    case WEFT_OPTION_SOCKET:
    case WEFT_OPTION_IGNORED:
        break;
    }
    return weft_asprintf("\"%s\"", text);
}

static void by_file(const struct weft_option *option, const struct sample *sample, const char *head,
                    const char *path)
{
    weft_autofree char *good_value = typed(option, sample->good);
    weft_autofree char *bad_value = typed(option, sample->bad);
    weft_autofree char *good = nested(head, path, good_value);
    weft_autofree char *bad = nested(head, path, bad_value);
    weft_auto(weft_options_done) struct weft_options o = {0};
    struct weft_error err = {0};
    CHECK_INT(read_one(NULL, NULL, &o, &err), 0);
    CHECK_INT(weft_options_apply_file(good, strlen(good), "f.yaml", &o, &err), 0);
    CHECK_STR(err.message, "");
    check_value(&o, option, sample);
    CHECK_INT(weft_options_apply_file(bad, strlen(bad), "f.yaml", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:");
    CHECK_CONTAINS(err.message, path);
    check_value(&o, option, sample); /* as it was */
}

static void by_both_kinds_of_file(void)
{
    static const char own[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n";
    size_t of_nvidia = 0;
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        const struct sample *sample = has_value(option) ? sample_of(option) : NULL;
        if (sample != NULL && option->own != NULL) {
            by_file(option, sample, own, option->own);
        }
        if (sample != NULL && option->nvidia != NULL && strcmp(sample->good, "auto") != 0) {
            by_file(option, sample, "version: v1\n", option->nvidia);
            of_nvidia++;
        }
    }
    CHECK_INT(of_nvidia, 18); /* of the fields of its struct Config, those that weft has */
}

static void what_decides_nothing_is_noted(void)
{
    static const struct {
        const char *flag, *variable, *nvidia, *value, *note;
    } rows[] = {
        {"--fail-on-init-error", "FAIL_ON_INIT_ERROR", "flags.failOnInitError", "true",
         "is looked at again and again"},
        {"--device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY",
         "flags.deviceDiscoveryStrategy", "tegra", "are not found"},
        {"--mps-root", "MPS_ROOT", "flags.mpsRoot", "/mps", "MPS is not supported"},
        {"--cdi-feature-flags", "CDI_FEATURE_FLAGS", NULL, "x", "writes CDI files itself"},
        {"--cdi-disable-hooks", "CDI_DISABLE_HOOKS", NULL, "all", "cannot leave hooks out"},
        {"--use-node-feature-api", "USE_NODE_FEATURE_API", "flags.useNodeFeatureAPI", "true",
         "--feature-file"},
        {"--oneshot", "GFD_ONESHOT", "flags.gfd.oneshot", "true", "whenever they change"},
        {"--sleep-interval", "GFD_SLEEP_INTERVAL", "flags.gfd.sleepInterval", "60s",
         "whenever they change"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(weft_options_done) struct weft_options o = {0};
        weft_auto(weft_options_done) struct weft_options p = {0};
        struct weft_error err = {0};
        asked_variable = NULL;
        CHECK_INT(read_one(rows[i].flag, rows[i].value, &o, &err), 0);
        CHECK_INT(o.note_count, 1);
        CHECK_CONTAINS(o.notes[0], rows[i].flag);
        CHECK_CONTAINS(o.notes[0], rows[i].note);
        asked_variable = rows[i].variable;
        asked_value = rows[i].value;
        CHECK_INT(read_one(NULL, NULL, &p, &err), 0);
        CHECK_INT(p.note_count, 1);
        CHECK_CONTAINS(p.notes[0], rows[i].variable);
        asked_variable = NULL;
        if (rows[i].nvidia != NULL) {
            weft_auto(weft_options_done) struct weft_options q = {0};
            weft_autofree char *text = nested("version: v1\n", rows[i].nvidia, rows[i].value);
            CHECK_INT(weft_options_apply_file(text, strlen(text), "f.yaml", &q, &err), 0);
            CHECK_INT(q.note_count, 1);
            CHECK_CONTAINS(q.notes[0], "f.yaml:");
            CHECK_CONTAINS(q.notes[0], rows[i].nvidia);
        }
    }
}

/* docs/device-plugin.md has each flag, its variables and its name in our file in one row. */
static void the_page_has_every_option(void)
{
    weft_autofree char *page = NULL;
    CHECK_INT(weft_file_read("docs/device-plugin.md", 1 << 20, &page, NULL, NULL), 0);
    for (size_t i = 0; page != NULL && i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (!has_value(option) || option->flags[0] == NULL) {
            continue;
        }
        char start[100];
        (void)snprintf(start, sizeof(start), "\n| `%s", option->flags[0]);
        const char *row = strstr(page, start);
        CHECK(row != NULL);
        if (row == NULL) {
            (void)fprintf(stderr, "docs/device-plugin.md has no row for %s\n", option->flags[0]);
            continue;
        }
        weft_autofree char *line = weft_asprintf("%.*s", (int)strcspn(row + 1, "\n"), row + 1);
        for (size_t k = 0; k < WEFT_OPTION_NAMES; k++) {
            CHECK_CONTAINS(line, option->flags[k] != NULL ? option->flags[k] : "");
            CHECK_CONTAINS(line, option->variables[k] != NULL ? option->variables[k] : "");
        }
        CHECK_CONTAINS(line, option->own != NULL ? option->own : "");
        CHECK_CONTAINS(line, option->kind == WEFT_OPTION_BOOL || option->fallback == NULL
                                 ? ""
                                 : option->fallback);
    }
}

WEFT_SUITE(plugin_option_names, {"by flags and variables", by_flags_and_variables},
           {"by both kinds of file", by_both_kinds_of_file},
           {"what decides nothing is noted", what_decides_nothing_is_noted},
           {"the page has every option", the_page_has_every_option})
