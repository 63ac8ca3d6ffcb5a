/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's flags, environment and config files, its own and NVIDIA's. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "tests/unit/unit.h"

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static char *some_env(const char *name)
{
    static char resource[] = "env.com/gpu", policy[] = "packed";
    return strcmp(name, "WEFT_RESOURCE") == 0            ? resource
           : strcmp(name, "WEFT_ALLOCATION_POLICY") == 0 ? policy
                                                         : NULL;
}

static int read_options(const char *const *args, char *(*env)(const char *),
                        struct weft_options *ret, struct weft_error *err)
{
    char *argv[12] = {NULL};
    int argc = 1;
    char program[] = "weft-device-plugin";
    argv[0] = program;
    for (; args[argc - 1] != NULL; argc++) {
        argv[argc] = weft_strdup(args[argc - 1]);
    }
    const int rc = weft_options_read(argc, argv, env, ret, err);
    for (int i = 1; i < argc; i++) {
        weft_free(argv[i]);
    }
    return rc;
}

#define READ(env, ret, err, ...)                                                                   \
    read_options((const char *const[]){__VA_ARGS__, NULL}, (env), (ret), (err))

static void flags_win_over_environment_over_file(void)
{
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/options.yaml", weft_test_dir());
    static const char text[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n"
                               "machine: /from/file\nresource: file.com/gpu\npluginDir: /plugins\n"
                               "hostRoot: /host\ndriverRoot: /drv\nvendor: nvidia\n"
                               "ignoredErrors: \"13, 94\"\ndriverTimeout: 2s\nrescan: 1m\n"
                               "allocationPolicy: packed\nlog: {format: json, level: warn}\n";
    CHECK_INT(weft_file_replace(file, text, strlen(text), 0600, NULL), 0);
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(READ(no_env, &o, &err, "--config", file), 0);
    CHECK_STR(o.machine, "/from/file");
    CHECK_STR(o.pools.resource, "file.com/gpu");
    CHECK_STR(o.host_root, "/host");
    CHECK_STR(o.respond.driver_root, "/drv");
    CHECK_STR(o.vendor, "nvidia");
    CHECK_STR(o.ignored_errors, "13, 94");
    CHECK_INT(o.driver_timeout_ns, 2 * WEFT_NS_PER_S);
    CHECK_INT(o.rescan_ns, 60 * WEFT_NS_PER_S);
    CHECK_STR(o.plugin_dir, "/plugins");
    CHECK_INT(o.policy, WEFT_POLICY_PACKED);
    CHECK_INT(o.log_format, WEFT_LOG_JSON);
    CHECK_INT(o.log_level, WEFT_LOG_WARN);
    weft_options_done(&o);
    CHECK_INT(READ(some_env, &o, &err, "--config", file, "--allocation-policy=performance"), 0);
    CHECK_STR(o.pools.resource, "env.com/gpu");
    CHECK_INT(o.policy, WEFT_POLICY_PERFORMANCE);
    weft_options_done(&o);
    CHECK_INT(READ(no_env, &o, &err, "--machine", "/m"), 0); /* the defaults */
    CHECK(o.pools.resource == NULL && o.host_root == NULL && o.vendor == NULL);
    CHECK_STR(weft_resource_of_vendor(""), "nvidia.com/gpu");
    CHECK_STR(weft_resource_of_vendor("amd"), "amd.com/gpu");
    CHECK_INT(o.driver_timeout_ns, 10 * WEFT_NS_PER_S);
    CHECK_INT(o.rescan_ns, 30 * WEFT_NS_PER_S);
    CHECK_STR(o.plugin_dir, "/var/lib/kubelet/device-plugins");
    CHECK_INT(o.policy, WEFT_POLICY_PERFORMANCE);
}

static void wrong_flags_are_named(void)
{
    struct weft_error err = {0};
    struct weft_options o = {0};
    CHECK_INT(READ(no_env, &o, &err, "--resource", "gpu"), -EINVAL);
    CHECK_CONTAINS(err.message, "--resource: \"gpu\" is not a resource name");
    CHECK_INT(READ(no_env, &o, &err, "--machine"), -EINVAL);
    CHECK_CONTAINS(err.message, "--machine needs a value");
    CHECK_INT(READ(no_env, &o, &err, "--machine="), -EINVAL);
    CHECK_CONTAINS(err.message, "is not a path");
    CHECK_INT(READ(no_env, &o, &err, "--vendor", "acme"), -EINVAL);
    CHECK_CONTAINS(err.message, "--vendor: \"acme\" is not a vendor");
    CHECK_INT(READ(no_env, &o, &err, "--ignored-errors", "13;31"), -EINVAL);
    CHECK_CONTAINS(err.message, "a list of XID numbers");
    CHECK_INT(READ(no_env, &o, &err, "--driver-timeout", "1us"), -EINVAL);
    CHECK_INT(READ(no_env, &o, &err, "--rescan", "0s"), -EINVAL);
    CHECK_CONTAINS(err.message, "--rescan: \"0s\" is not a time from 10ms to 1h");
    CHECK_INT(READ(no_env, &o, &err, "--host-root="), -EINVAL);
    CHECK_INT(READ(no_env, &o, &err, "--config", "/nonexistent.yaml"), -ENOENT);
    CHECK(o.machine == NULL && o.pools.resource == NULL); /* untouched */
}

static int apply(const char *text, struct weft_options *o, struct weft_error *err)
{
    return weft_options_apply_file(text, strlen(text), "f.yaml", o, err);
}

static void a_field_that_would_be_ignored_is_an_error_with_its_line(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    static const char head[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n";
    char text[300];
    (void)snprintf(text, sizeof(text), "%slog:\n  colour: red\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:4: log.colour");
    (void)snprintf(text, sizeof(text), "%sallocationPolicy: fast\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:3: allocationPolicy: \"fast\" is not performance or");
    (void)snprintf(text, sizeof(text), "%sresource: [a]\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_INT(apply("kind: DevicePluginConfig\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "apiVersion");
    CHECK_INT(apply("a: b\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "neither kind: DevicePluginConfig nor");
    CHECK_INT(apply(": : :\n", &o, &err), -EINVAL);
}

static void nvidias_file_is_read_as_far_as_it_means_the_same(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(apply("version: v1\nflags:\n  migStrategy: mixed\n  failOnInitError: false\n"
                    "  nvidiaDriverRoot: /run/nvidia/driver\n"
                    "  plugin:\n    passDeviceSpecs: true\n    deviceListStrategy: [envvar]\n"
                    "    deviceIDStrategy: uuid\n",
                    &o, &err),
              0);
    CHECK_INT(o.pools.partitions, WEFT_PARTITIONS_MIXED);
    CHECK_STR(o.respond.driver_root, "/run/nvidia/driver");
    CHECK_INT(apply("version: v1\nflags:\n  migStrategy: both\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:3: flags.migStrategy: \"both\" is not auto, none, single");
    CHECK_INT(apply("version: v1\nsharing:\n  mps:\n    resources: []\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:4: sharing.mps: MPS is not supported");
    CHECK_INT(apply("version: v2\n", &o, &err), -EINVAL);
}

/* The example of NVIDIA's documentation, in our words: names without a domain are NVIDIA's. */
static void nvidias_sharing_and_names_are_read(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(apply("version: v1\n"
                    "resources:\n  gpus:\n  - {pattern: \"*A100*\", name: a100}\n"
                    "  mig:\n  - {pattern: 1g.*, name: example.com/slice}\n"
                    "sharing:\n  timeSlicing:\n    renameByDefault: true\n"
                    "    failRequestsGreaterThanOne: true\n    resources:\n"
                    "    - {name: nvidia.com/gpu, replicas: 10}\n"
                    "    - {name: a100, replicas: 2, rename: a100-part}\n",
                    &o, &err),
              0);
    const struct weft_pool_settings *p = &o.pools;
    CHECK_INT(p->rename_count, 2);
    CHECK_STR(p->renames[0].resource, "nvidia.com/a100");
    CHECK(!p->renames[0].partitions && p->renames[1].partitions);
    CHECK_STR(p->renames[1].resource, "example.com/slice");
    CHECK_INT(p->share_count, 2);
    CHECK_STR(p->shares[0].resource, "nvidia.com/gpu");
    CHECK_INT(p->shares[0].replicas, 10);
    CHECK(p->shares[0].rename == NULL);
    CHECK_STR(p->shares[1].rename, "nvidia.com/a100-part");
    CHECK(p->rename_by_default && p->fail_above_one);
}

static void wrong_sharing_is_named_with_its_line(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"- {name: nvidia.com/gpu, replicas: 1}",
         "f.yaml:5: sharing.timeSlicing.resources[0].replicas"},
        {"- {name: nvidia.com/gpu}",
         "f.yaml:5: sharing.timeSlicing.resources[0]: needs \"replicas\""},
        {"- {replicas: 2}", "resources[0]: needs a \"name\""},
        {"- {name: \"a b\", replicas: 2}", "resources[0].name: \"a b\" is not a resource name"},
        {"- {name: gpu, replicas: 2, devices: 4}", "resources[0].devices: only all is supported"},
        {"- {name: gpu, replicas: 2, device: all}", "resources[0].device: unknown field"},
        {"- {name: gpu, replicas: 2}\n    - {name: nvidia.com/gpu, replicas: 3}",
         "f.yaml:6: sharing.timeSlicing.resources[1]: nvidia.com/gpu stands there twice"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char text[400];
        struct weft_error err = {0};
        weft_auto(weft_options_done) struct weft_options o = {0};
        (void)snprintf(text, sizeof(text),
                       "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    %s\n",
                       rows[i].text);
        CHECK_INT(apply(text, &o, &err), -EINVAL);
        CHECK_CONTAINS(err.message, rows[i].message);
    }
}

static void our_own_file_says_the_same(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    static const char head[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n";
    char text[600];
    (void)snprintf(text, sizeof(text),
                   "%spartitions: single\nrenames:\n- {pattern: \"*\", resource: a.com/b, "
                   "partitions: true}\nsharing:\n  policy: packed\n  resources:\n"
                   "  - {name: a.com/b, replicas: 3}\n",
                   head);
    CHECK_INT(apply(text, &o, &err), 0);
    CHECK_INT(o.pools.partitions, WEFT_PARTITIONS_SINGLE);
    CHECK_INT(o.pools.sharing, WEFT_SHARING_PACKED);
    CHECK(o.pools.renames[0].partitions);
    CHECK_INT(o.pools.shares[0].replicas, 3);
    (void)snprintf(text, sizeof(text), "%ssharing:\n  policy: fair\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:4: sharing.policy: \"fair\" is not distributed or packed");
}

static bool noted(const struct weft_options *o, const char *part)
{
    for (size_t i = 0; i < o->note_count; i++) {
        if (strstr(o->notes[i], part) != NULL) {
            return true;
        }
    }
    return false;
}

/* NVIDIA's reader passes over what it does not know and takes keys in any letters. */
static void what_nvidias_file_says_and_weft_does_not_do_is_named(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(apply("version: v1\nflags:\n  colour: {red: 1}\n  plugin:\n    speed: 3\n"
                    "resources:\n  gpus:\n  - {pattern: \"a[1]?*\", name: b}\n",
                    &o, &err),
              0);
    CHECK(noted(&o, "f.yaml:3: flags.colour: has no effect"));
    CHECK(noted(&o, "f.yaml:5: flags.plugin.speed: has no effect"));
    CHECK(noted(&o, "f.yaml:7: resources: has an effect here, other than in NVIDIA's plugin"));
    CHECK_INT(o.note_count, 3);
    CHECK_STR(o.pools.renames[0].pattern, "a\\[1]\\?*"); /* of its patterns only * is one */
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"version: v1\nflags: {migstrategy: mixed}\n",
         "flags.migstrategy: is written flags.migStr"},
        {"version: v1\nFlags: {}\n", "f.yaml:2: Flags: is written flags"},
        {"version: v1\nflags: 3\n", "f.yaml:2: flags: is no object"},
        {"version: v1\nflags: {gdsEnabled: \"true\"}\n", "is not true or false (without quotes)"},
        {"version: v1\nflags: {plugin: {deviceListStrategy: []}}\n", "is not a list of envvar"},
        {"version: v1\nflags: {plugin: {deviceListStrategy: [cdi-cri, 3]}}\n", "\"cdi-cri,3\""},
        {"version: v1\nimex: {channelIDs: [0, -1]}\n", "imex.channelIDs: \"0,-1\" is not a list"},
        {"version: v1\nsharing: {timeSlicing: {renameByDefalt: true}}\n", "unknown field"},
        {"version: v1\nflags: {failOnInitError: maybe}\n", "is not true or false"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(weft_options_done) struct weft_options other = {0};
        CHECK_INT(apply(rows[i].text, &other, &err), -EINVAL);
        CHECK_CONTAINS(err.message, rows[i].message);
    }
}

static const char whole_nvidia_file[] =
    "version: v1\nflags:\n  migStrategy: mixed\n  failOnInitError: true\n"
    "  nvidiaDriverRoot: /run/nvidia/driver\n  gdsEnabled: true\n  colour: red\n"
    "  plugin: {deviceListStrategy: [envvar, cdi-cri], deviceIDStrategy: index}\n"
    "  gfd: {outputFile: /f, noTimestamp: true}\n"
    "resources: {gpus: [{pattern: \"*\", name: x}], mig: [{pattern: 1g.*, name: y}]}\n"
    "sharing: {timeSlicing: {resources: [{name: x, replicas: 3, rename: z, devices: all}]}}\n"
    "imex: {channelIDs: [0], required: true}\n";

static char *written(const struct weft_options *o)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    CHECK_INT(weft_options_write(o, &buf), 0);
    return weft_buf_steal(&buf);
}

static void what_is_printed_reads_back_the_same(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    weft_auto(weft_options_done) struct weft_options again = {0};
    CHECK_INT(READ(no_env, &o, &err, "--listen", ":9420", "--ignored-errors="), 0);
    CHECK_INT(apply(whole_nvidia_file, &o, &err), 0);
    CHECK_INT(READ(no_env, &again, &err, "--log-level=info"), 0);
    weft_autofree char *text = written(&o);
    CHECK_CONTAINS(text, "ignoredErrors: \"\"\n");
    CHECK_INT(apply(text, &again, &err), 0);
    CHECK_STR(err.message, "");
    weft_autofree char *second = written(&again);
    CHECK_STR(second, text);
    CHECK_INT(again.pools.share_count, 1);
    CHECK_STR(again.pools.shares[0].rename, "nvidia.com/z");
    CHECK_INT(again.respond.imex_channel_count, 1);
    CHECK(weft_options_fixed_difference(&o, &again) == NULL);
    CHECK_INT(apply("apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\nlisten: :1\n", &again,
                    &err),
              0);
    CHECK_STR(weft_options_fixed_difference(&o, &again), "listen");
}

static void without_memory_a_file_is_an_error_and_nothing_leaks(void)
{
    int rc = -ENOMEM;
    uint64_t nth = 1;
    for (; nth < 3000 && rc < 0; nth++) {
        weft_auto(weft_options_done) struct weft_options o = {0};
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, 1 << 20);
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        rc = apply(whole_nvidia_file, &o, &err);
        rc = rc == 0 ? weft_options_write(&o, &buf) : rc;
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK(rc == 0 && nth > 50);
}

static char *mig_env(const char *name)
{
    static char mixed[] = "mixed";
    return strcmp(name, "MIG_STRATEGY") == 0 ? mixed : NULL;
}

static void two_names_of_one_thing(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(READ(mig_env, &o, &err, "--machine", "/m"), 0);
    CHECK_INT(o.pools.partitions, WEFT_PARTITIONS_MIXED);
    weft_options_done(&o);
    CHECK_INT(READ(mig_env, &o, &err, "--machine", "/m", "--partitions", "single"), 0);
    CHECK_INT(o.pools.partitions, WEFT_PARTITIONS_SINGLE); /* a flag wins, whatever its name */
    weft_options_done(&o);
    CHECK_INT(READ(no_env, &o, &err, "--partitions=none", "--mig-strategy=none"), -EINVAL);
    CHECK_CONTAINS(err.message, "--partitions and --mig-strategy say the same thing");
}

static void resource_names_are_the_kubelets(void)
{
    static const char *const good[] = {"nvidia.com/gpu", "a/b", "x.y-z.org/A_b.c-9"};
    static const char *const bad[] = {"gpu",
                                      "/gpu",
                                      "nvidia.com/",
                                      "a b.com/gpu",
                                      "kubernetes.io/gpu",
                                      "x.kubernetes.io/gpu",
                                      "requests.nvidia.com/gpu",
                                      "a.com/-gpu",
                                      "a.com/gpu_",
                                      "a.com/b/c",
                                      "",
                                      "A.com/gpu"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
        CHECK(weft_resource_valid(good[i]));
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK(!weft_resource_valid(bad[i]));
    }
    char name[100] = "a.com/";
    memset(name + 6, 'x', 63);
    CHECK(weft_resource_valid(name));
    name[69] = 'x';
    CHECK(!weft_resource_valid(name));
}

/* DIR/kubelet.sock must fit a unix socket's 107 bytes: 94 are left for DIR. */
static void a_folder_too_long_for_a_socket_is_refused(void)
{
    char dir[128] = "/";
    memset(dir + 1, 'd', 93);
    weft_auto(weft_options_done) struct weft_options o = {0};
    struct weft_error err = {0};
    CHECK_INT(READ(no_env, &o, &err, "--machine", "m", "--plugin-dir", dir), 0);
    dir[94] = 'd';
    weft_auto(weft_options_done) struct weft_options longer = {0};
    CHECK_INT(READ(no_env, &longer, &err, "--machine", "m", "--plugin-dir", dir), -EINVAL);
    CHECK_CONTAINS(err.message, "--plugin-dir: 95 bytes are too long");
    CHECK_CONTAINS(err.message, "at most 94");
}

static void what_cannot_be_a_value_is_wrong_use(void)
{
    weft_auto(weft_options_done) struct weft_options none = {0};
    struct weft_error err = {0};
    CHECK_INT(READ(no_env, &none, &err, "--config", ""), -EINVAL);
    CHECK_CONTAINS(err.message, "--config: \"\" is not a path");
    /* 0xff begins no character: the value could not be printed as YAML, nor logged as JSON */
    weft_auto(weft_options_done) struct weft_options bytes = {0};
    CHECK_INT(READ(no_env, &bytes, &err, "--host-root", "/\xff"), -EINVAL);
    CHECK_CONTAINS(err.message, "--host-root: is no UTF-8 text");
}

WEFT_SUITE(plugin_options,
           {"flags win over environment over file", flags_win_over_environment_over_file},
           {"wrong flags are named", wrong_flags_are_named},
           {"a field that would be ignored is an error with its line",
            a_field_that_would_be_ignored_is_an_error_with_its_line},
           {"nvidia's file is read as far as it means the same",
            nvidias_file_is_read_as_far_as_it_means_the_same},
           {"NVIDIA's sharing and names are read", nvidias_sharing_and_names_are_read},
           {"wrong sharing is named with its line", wrong_sharing_is_named_with_its_line},
           {"our own file says the same", our_own_file_says_the_same},
           {"what NVIDIA's file says and weft does not do is named",
            what_nvidias_file_says_and_weft_does_not_do_is_named},
           {"what is printed reads back the same", what_is_printed_reads_back_the_same},
           {"without memory a file is an error, and nothing leaks",
            without_memory_a_file_is_an_error_and_nothing_leaks},
           {"two names of one thing", two_names_of_one_thing},
           {"resource names are the kubelet's", resource_names_are_the_kubelets},
           {"a folder too long for a socket is refused", a_folder_too_long_for_a_socket_is_refused},
           {"what cannot be a value is wrong use", what_cannot_be_a_value_is_wrong_use})
