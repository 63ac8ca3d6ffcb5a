/* SPDX-License-Identifier: Apache-2.0 */
/* Reads flags; must not look at what they name, but for whether two of them name one folder. */
#include "controller/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/labels.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/http/http.h"
#include "pkg/hypernode/hypernode.h"

const char weft_options_usage[] =
    "usage: weft-controller --config FILE [options]\n"
    "Keeps Volcano HyperNodes and tier labels of Nodes in line with the network.\n"
    "\n"
    "  --config FILE        ControllerConfig; read again when it changes or on SIGHUP\n"
    "  --kubeconfig FILE    default: the pod's service account, else $KUBECONFIG, else\n"
    "                       ~/.kube/config; --context NAME takes another of its contexts\n"
    "  --once               one pass, then exit\n"
    "  --uninstall          remove the HyperNodes and tier labels of this controller, then exit;\n"
    "                       no --config. Stop the running controller first: it has the Lease\n"
    "  --dry-run            print what a pass would write and write nothing\n"
    "  --output DIR         write HyperNode manifests to DIR, nothing to the API server\n"
    "  --against DIR        with --output: also numbered steps from the state in this DIR\n"
    "  --nodes FILE         with --output: Nodes from `kubectl get nodes -o json`\n"
    "  --pods FILE          with --dry-run or --against: name the running gangs whose HyperNodes\n"
    "                       lose nodes; FILE from `kubectl get pods -A -o json`\n"
    "  --namespace NS       of the Lease (default: $POD_NAMESPACE, else weft-system)\n"
    "  --lease NAME         default weft-controller\n"
    "  --instance NAME      marks the HyperNodes of this controller (default weft)\n"
    "  --label-prefix P/    of labels and annotations (default weft.dev/)\n"
    "  --volcano-namespace NS  where Volcano is installed (default volcano-system)\n"
    "  --volcano-release N  names its ConfigMaps, N-scheduler-configmap and\n"
    "                       N-controller-configmap (default volcano)\n"
    "  --label-rate N       Nodes labelled a second, at most (default 20)\n"
    "  --listen ADDR:PORT   /metrics, /livez, /readyz, /debug/tree; not with --once, --dry-run\n"
    "                       or --output\n"
    "  --log-format F       logfmt or json      --log-level L   debug, info, warn, error\n"
    "  --version  --help\n"
    "\n"
    "Exit status: 0 done, 1 something failed or was refused, 2 wrong use.\n";

enum flag {
    FLAG_FIRST = 256, /* above every character */
    FLAG_CONFIG = FLAG_FIRST,
    FLAG_KUBECONFIG,
    FLAG_CONTEXT,
    FLAG_ONCE,
    FLAG_UNINSTALL,
    FLAG_DRY_RUN,
    FLAG_OUTPUT,
    FLAG_AGAINST,
    FLAG_NODES,
    FLAG_PODS,
    FLAG_LISTEN,
    FLAG_NAMESPACE,
    FLAG_LEASE,
    FLAG_INSTANCE,
    FLAG_PREFIX,
    FLAG_VOLCANO_NAMESPACE,
    FLAG_VOLCANO_RELEASE,
    FLAG_LABEL_RATE,
    FLAG_CRD_RETRY,
    FLAG_WATCH_IDLE,
    FLAG_LOG_FORMAT,
    FLAG_LOG_LEVEL,
    FLAG_VERSION,
    FLAG_HELP,
    FLAG_COUNT
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, FLAG_CONFIG},
    {"kubeconfig", required_argument, NULL, FLAG_KUBECONFIG},
    {"context", required_argument, NULL, FLAG_CONTEXT},
    {"once", no_argument, NULL, FLAG_ONCE},
    {"uninstall", no_argument, NULL, FLAG_UNINSTALL},
    {"dry-run", no_argument, NULL, FLAG_DRY_RUN},
    {"output", required_argument, NULL, FLAG_OUTPUT},
    {"against", required_argument, NULL, FLAG_AGAINST},
    {"nodes", required_argument, NULL, FLAG_NODES},
    {"pods", required_argument, NULL, FLAG_PODS},
    {"listen", required_argument, NULL, FLAG_LISTEN},
    {"namespace", required_argument, NULL, FLAG_NAMESPACE},
    {"lease", required_argument, NULL, FLAG_LEASE},
    {"instance", required_argument, NULL, FLAG_INSTANCE},
    {"label-prefix", required_argument, NULL, FLAG_PREFIX},
    {"volcano-namespace", required_argument, NULL, FLAG_VOLCANO_NAMESPACE},
    {"volcano-release", required_argument, NULL, FLAG_VOLCANO_RELEASE},
    {"label-rate", required_argument, NULL, FLAG_LABEL_RATE},
    /* for tests, which cannot wait that long; not in the help */
    {"crd-retry", required_argument, NULL, FLAG_CRD_RETRY},
    {"watch-idle", required_argument, NULL, FLAG_WATCH_IDLE},
    {"log-format", required_argument, NULL, FLAG_LOG_FORMAT},
    {"log-level", required_argument, NULL, FLAG_LOG_LEVEL},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

/* Flags whose value is text: where it goes, or NULL. */
static const char **text_slot(struct weft_options *o, int flag)
{
    const struct {
        int flag;
        const char **slot;
    } slots[] = {
        {FLAG_CONFIG, &o->config},
        {FLAG_KUBECONFIG, &o->kubeconfig},
        {FLAG_CONTEXT, &o->context},
        {FLAG_OUTPUT, &o->output},
        {FLAG_AGAINST, &o->against},
        {FLAG_NODES, &o->nodes},
        {FLAG_NAMESPACE, &o->ns},
        {FLAG_LEASE, &o->lease},
        {FLAG_INSTANCE, &o->instance},
        {FLAG_PREFIX, &o->prefix},
        {FLAG_LISTEN, &o->listen},
        {FLAG_PODS, &o->pods},
        {FLAG_VOLCANO_NAMESPACE, &o->volcano_ns},
        {FLAG_VOLCANO_RELEASE, &o->volcano_release},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(slots); i++) {
        if (slots[i].flag == flag) {
            return slots[i].slot;
        }
    }
    return NULL;
}

static bool switch_flag(struct weft_options *o, int flag)
{
    o->once = o->once || flag == FLAG_ONCE || flag == FLAG_UNINSTALL;
    o->uninstall = o->uninstall || flag == FLAG_UNINSTALL;
    o->dry_run = o->dry_run || flag == FLAG_DRY_RUN;
    o->version = o->version || flag == FLAG_VERSION;
    o->help = o->help || flag == FLAG_HELP;
    return flag == FLAG_ONCE || flag == FLAG_UNINSTALL || flag == FLAG_DRY_RUN ||
           flag == FLAG_VERSION || flag == FLAG_HELP;
}

static const char *name_of(int flag)
{
    for (const struct option *o = long_options; o->name != NULL; o++) {
        if (o->val == flag) {
            return o->name;
        }
    }
    return NULL;
}

static int set_value(struct weft_options *o, int flag, const char *value, struct weft_error *err)
{
    const char *allowed = "";
    uint64_t rate = 0;
    int rc = 0;
    switch (flag) {
    case FLAG_LABEL_RATE:
        allowed = "1 to 1000";
        _Static_assert(WEFT_LABELS_RATE_MAX == 1000, "what the message says");
        rc = weft_parse_u64(weft_str(value), WEFT_LABELS_RATE_MAX, &rate);
        o->label_rate = (unsigned)rate;
        rc = rc == 0 && rate == 0 ? -ERANGE : rc;
        break;
    case FLAG_CRD_RETRY:
    case FLAG_WATCH_IDLE:
        allowed = "durations like 500ms, 30s, 5m";
        rc = weft_parse_duration(weft_str(value),
                                 flag == FLAG_CRD_RETRY ? &o->crd_retry_ns : &o->watch_idle_ns);
        break;
    case FLAG_LOG_FORMAT:
        allowed = "logfmt, json";
        rc = weft_log_parse_format(value, &o->log_format);
        break;
    default:
        allowed = "debug, info, warn, error";
        rc = weft_log_parse_level(value, &o->log_level);
        break;
    }
    return rc < 0 ? weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                 "--%s: bad value \"%.80s\", allowed are %s", name_of(flag), value,
                                 allowed)
                  : 0;
}

/* What getopt_long refused; seen is the argument that it stopped at. */
static int refuse(int flag, const char *seen, struct weft_error *err)
{
    const char *name = name_of(optopt);
    if (flag == ':') {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--%s needs a value", name);
    }
    if (name != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--%s takes no value", name);
    }
    if (optopt != 0) { /* a letter, perhaps one of several after a single dash */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "-%c: unknown option", optopt);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%.80s: unknown option", seen);
}

static int take(struct weft_options *o, int flag, struct weft_error *err)
{
    const char **slot = text_slot(o, flag);
    if (slot == NULL) {
        return switch_flag(o, flag) ? 0 : set_value(o, flag, optarg, err);
    }
    *slot = optarg;
    return optarg[0] != '\0'
               ? 0
               : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--%s needs a value", name_of(flag));
}

static int read_flags(int argc, char *const argv[], struct weft_options *o, struct weft_error *err)
{
    bool given[FLAG_COUNT - FLAG_FIRST] = {false};
    int flag = 0;
    optind = 0; /* also forgets what an earlier parse was in the middle of */
    opterr = 0;
    while ((flag = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (flag < FLAG_FIRST) {
            return refuse(flag, argv[optind - 1], err);
        }
        if (given[flag - FLAG_FIRST]) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "--%s may be given 1 time",
                                name_of(flag));
        }
        given[flag - FLAG_FIRST] = true;
        const int rc = take(o, flag, err);
        if (rc < 0) {
            return rc;
        }
    }
    return optind == argc ? 0
                          : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unexpected argument '%s'",
                                         argv[optind]);
}

/* [subdomain]/ as the prefix of label keys. */
/* By name, or because both names lead to the same place. */
static bool same_folder(const char *one, const char *other)
{
    struct stat a = {0};
    struct stat b = {0};
    if (strcmp(one, other) == 0) {
        return true;
    }
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static const char *check_output(const struct weft_options *o)
{
    if (o->against != NULL && o->output == NULL) {
        return "--against needs --output";
    }
    if (o->nodes != NULL && o->output == NULL) {
        return "--nodes needs --output";
    }
    if (o->nodes != NULL && o->kubeconfig != NULL) {
        return "--nodes and --kubeconfig exclude each other";
    }
    if (o->dry_run && o->output != NULL) {
        return "--dry-run writes nothing and --output writes files: give one of them";
    }
    if (o->against != NULL && same_folder(o->against, o->output)) {
        return "--against and --output are the same folder: the state before would be overwritten";
    }
    return NULL;
}

/* Options that only some kinds of run look at. */
static const char *check_run(const struct weft_options *o)
{
    if (o->pods != NULL && !o->dry_run && o->against == NULL) {
        return "--pods needs --dry-run, or --output and --against: it tells what a change touches";
    }
    if (o->listen != NULL && (o->once || o->dry_run || o->output != NULL)) {
        return "--listen is for a controller that stays: not with --once, --dry-run or --output";
    }
    if (o->uninstall && o->config != NULL) {
        return "--uninstall removes all of this controller's: it reads no --config";
    }
    if (o->uninstall && o->output != NULL) {
        return "--uninstall is for a cluster: not with --output";
    }
    return NULL;
}

static int check(const struct weft_options *o, struct weft_error *err)
{
    const char *wrong = check_output(o);
    wrong = wrong == NULL ? check_run(o) : wrong;
    if (o->config == NULL && !o->uninstall) {
        wrong = "--config FILE is missing";
    } else if (wrong != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s", wrong);
    } else if (!weft_label_prefix_valid(o->prefix)) {
        wrong = "--label-prefix must be a DNS subdomain and a slash";
    } else if (!weft_dns_label_valid(o->instance)) {
        wrong = "--instance must be a DNS label";
    } else if (!weft_dns_label_valid(o->ns)) {
        wrong = "--namespace must be a DNS label";
    } else if (!weft_dns_subdomain_valid(o->lease)) {
        wrong = "--lease must be a DNS subdomain";
    } else if (!weft_dns_label_valid(o->volcano_ns)) {
        wrong = "--volcano-namespace must be a DNS label";
    } else if (!weft_dns_label_valid(o->volcano_release)) {
        wrong = "--volcano-release must be a DNS label";
    }
    if (wrong == NULL && o->listen != NULL && weft_http_check_listen(o->listen, err) < 0) {
        return weft_err_wrap(err, -EINVAL, "--listen");
    }
    return wrong != NULL ? weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s", wrong) : 0;
}

int weft_options_parse(int argc, char *const argv[], struct weft_options *ret_options,
                       struct weft_error *err)
{
    const char *pod_ns = getenv("POD_NAMESPACE");
    struct weft_options o = {
        .ns = pod_ns != NULL && pod_ns[0] != '\0' ? pod_ns : "weft-system",
        .lease = "weft-controller",
        .instance = "weft",
        .prefix = "weft.dev/",
        .volcano_ns = "volcano-system",
        .volcano_release = "volcano",
        .label_rate = WEFT_LABELS_RATE_DEFAULT,
        .crd_retry_ns = 60 * WEFT_NS_PER_S,
        .log_format = WEFT_LOG_LOGFMT,
        .log_level = WEFT_LOG_INFO,
    };
    const int read = read_flags(argc, argv, &o, err);
    if (read < 0) {
        return read;
    }
    if (!o.help && !o.version) {
        const int rc = check(&o, err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret_options = o;
    return 0;
}
