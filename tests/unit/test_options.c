/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weft-controller. */
#include "controller/options.h"

#include <errno.h>

#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

enum { ARGS_MAX = 12 };

static int parse(const char *const *args, struct weft_options *o, struct weft_error *err)
{
    char *argv[ARGS_MAX + 2] = {weft_strdup("weft-controller")};
    int argc = 1;
    for (; args[argc - 1] != NULL && argc <= ARGS_MAX; argc++) {
        argv[argc] = weft_strdup(args[argc - 1]);
    }
    *err = (struct weft_error){0};
    const int rc = weft_options_parse(argc, argv, o, err);
    /* values point into argv: the tests that look at them use static texts instead */
    for (int i = 0; i < argc; i++) {
        weft_free(argv[i]);
    }
    return rc;
}

#define PARSE(o, err, ...) parse((const char *const[]){__VA_ARGS__, NULL}, o, err)

static void test_good(void)
{
    struct weft_options o;
    struct weft_error err;
    (void)unsetenv("POD_NAMESPACE");
    CHECK_INT(PARSE(&o, &err, "--config", "c.yaml"), 0);
    CHECK_STR(o.ns, "weft-system");
    CHECK_STR(o.lease, "weft-controller");
    CHECK_STR(o.prefix, "weft.dev/");
    CHECK_INT(o.label_rate, 20);
    CHECK_INT(o.crd_retry_ns, 60 * WEFT_NS_PER_S);
    CHECK(!o.once && !o.dry_run);
    CHECK_INT(PARSE(&o, &err, "--config=c", "--once", "--dry-run", "--label-rate=5",
                    "--crd-retry=2s", "--watch-idle=3s", "--log-format", "json", "--log-level",
                    "debug"),
              0);
    CHECK(o.once && o.dry_run);
    CHECK_INT(o.label_rate, 5);
    CHECK_INT(o.crd_retry_ns, 2 * WEFT_NS_PER_S);
    CHECK_INT(o.watch_idle_ns, 3 * WEFT_NS_PER_S);
    CHECK_INT(o.log_format, WEFT_LOG_JSON);
    CHECK_INT(o.log_level, WEFT_LOG_DEBUG);
    CHECK_INT(PARSE(&o, &err, "--uninstall"), 0);
    CHECK(o.uninstall && o.once && o.config == NULL);
    CHECK_INT(PARSE(&o, &err, "--help"), 0);
    CHECK(o.help);
    CHECK_INT(PARSE(&o, &err, "--version"), 0);
    CHECK(o.version);
}

static void test_pod_namespace(void)
{
    struct weft_options o;
    struct weft_error err;
    CHECK_INT(setenv("POD_NAMESPACE", "net", 1), 0);
    CHECK_INT(PARSE(&o, &err, "--config", "c"), 0);
    CHECK_STR(o.ns, "net");
    CHECK_INT(unsetenv("POD_NAMESPACE"), 0);
}

static void test_wrong(void)
{
    struct weft_options o;
    struct weft_error err;
    CHECK_INT(PARSE(&o, &err, "--once"), -EINVAL);
    CHECK_CONTAINS(err.message, "--config");
    CHECK_INT(PARSE(&o, &err, "--uninstall", "--config", "c"), -EINVAL);
    CHECK_CONTAINS(err.message, "reads no --config");
    CHECK_INT(PARSE(&o, &err, "--uninstall", "--output", "d"), -EINVAL);
    CHECK_CONTAINS(err.message, "not with --output");
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--nonsense"), -EINVAL);
    CHECK_CONTAINS(err.message, "--nonsense");
    CHECK_INT(PARSE(&o, &err, "--config"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "extra"), -EINVAL);
    CHECK_CONTAINS(err.message, "extra");
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--against", "d"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--nodes", "n"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--label-rate", "0"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--label-rate", "x"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--label-prefix", "weft.dev"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--label-prefix", "We_ft/"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--instance", "A"), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--namespace", ""), -EINVAL);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--log-level", "loud"), -EINVAL);
    CHECK_INT(
        PARSE(&o, &err, "--config", "c", "--output", "o", "--nodes", "n", "--kubeconfig", "k"),
        -EINVAL);
}

/* Every refusal names its option. */
static void test_names(void)
{
    static const struct {
        const char *args[4];
        const char *message;
    } wrong[] = {
        {{"--config=c", "--log-level", "foo"},
         "--log-level: bad value \"foo\", allowed are debug, info, warn, error"},
        {{"--config=c", "--log-level="},
         "--log-level: bad value \"\", allowed are debug, info, warn, error"},
        {{"--config=c", "--log-format=xml"},
         "--log-format: bad value \"xml\", allowed are logfmt, json"},
        {{"--label-rate", "0"}, "--label-rate: bad value \"0\", allowed are 1 to 1000"},
        {{"--crd-retry", "soon"},
         "--crd-retry: bad value \"soon\", allowed are durations like 500ms, 30s, 5m"},
        {{"--watch-idle", "5x"},
         "--watch-idle: bad value \"5x\", allowed are durations like 500ms, 30s, 5m"},
        {{"--config"}, "--config needs a value"},
        {{"--config="}, "--config needs a value"},
        {{"--config=c", "--output", ""}, "--output needs a value"},
        {{"--bogus"}, "--bogus: unknown option"},
        {{"--config", "c", "--bogus", "d"}, "--bogus: unknown option"},
        {{"-xy"}, "-x: unknown option"},
        {{"--once=yes"}, "--once takes no value"},
        {{"--config=c", "--config=d"}, "--config may be given 1 time"},
        {{"--config=c", "--listen=9421"},
         "--listen: \"9421\" is no address to listen on like 0.0.0.0:9400, [::1]:9400 or :9400"},
        {{"--config=c", "--listen=:9421", "--once"},
         "--listen is for a controller that stays: not with --once, --dry-run or --output"},
        {{"--once", "--config=c", "--once"}, "--once may be given 1 time"},
    };
    struct weft_options o;
    struct weft_error err;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(wrong); i++) {
        CHECK_INT(parse(wrong[i].args, &o, &err), -EINVAL);
        CHECK_STR(err.message, wrong[i].message);
    }
}

static void test_folders(void)
{
    struct weft_options o;
    struct weft_error err;
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--dry-run", "--output", "o"), -EINVAL);
    CHECK_CONTAINS(err.message, "--dry-run");
    CHECK_CONTAINS(err.message, "--output");
    /* one that is not there yet, then one that is under two names, then two folders */
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--output", "no/such", "--against", "no/such"),
              -EINVAL);
    CHECK_CONTAINS(err.message, "same folder");
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--output", "/tmp", "--against", "/proc/../tmp/."),
              -EINVAL);
    CHECK_CONTAINS(err.message, "same folder");
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--output", "/tmp", "--against", "/proc"), 0);
    CHECK_INT(PARSE(&o, &err, "--config", "c", "--output", "no/such", "--against", "/tmp"), 0);
    CHECK_INT(PARSE(&o, &err, "--config=c", "--output=no/such", "--against=/tmp", "--pods=p"), 0);
    CHECK_INT(PARSE(&o, &err, "--config=c", "--dry-run", "--pods=p"), 0);
    CHECK_INT(PARSE(&o, &err, "--config=c", "--output=no/such", "--pods=p"), -EINVAL);
    CHECK_CONTAINS(err.message, "--pods needs --dry-run, or --output and --against");
    CHECK_INT(PARSE(&o, &err, "--config=c", "--pods=p"), -EINVAL);
}

WEFT_SUITE(options, {"good", test_good}, {"pod namespace", test_pod_namespace},
           {"wrong", test_wrong}, {"names", test_names}, {"folders", test_folders})
