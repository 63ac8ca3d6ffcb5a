/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's flags, environment and config files, its own and NVIDIA's. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/options.h"
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
    CHECK_INT(READ(no_env, &longer, &err, "--machine", "m", "--plugin-dir", dir), -ENAMETOOLONG);
    CHECK_CONTAINS(err.message, "--plugin-dir: 95 bytes are too long");
    CHECK_CONTAINS(err.message, "at most 94");
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
           {"two names of one thing", two_names_of_one_thing},
           {"resource names are the kubelet's", resource_names_are_the_kubelets},
           {"a folder too long for a socket is refused", a_folder_too_long_for_a_socket_is_refused})
