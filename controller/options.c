/* SPDX-License-Identifier: Apache-2.0 */
/* Reads flags; must not look at what they name. */
#include "controller/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "controller/labels.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/hypernode.h"

const char weft_options_usage[] =
    "usage: weft-controller --config FILE [options]\n"
    "Keeps Volcano HyperNodes and tier labels of Nodes in line with the network.\n"
    "\n"
    "  --config FILE        ControllerConfig; read again when it changes or on SIGHUP\n"
    "  --kubeconfig FILE    default: the pod's service account, else $KUBECONFIG, else\n"
    "                       ~/.kube/config; --context NAME takes another of its contexts\n"
    "  --once               one pass, then exit\n"
    "  --dry-run            print what a pass would write and write nothing\n"
    "  --output DIR         write HyperNode manifests to DIR, nothing to the API server\n"
    "  --against DIR        with --output: also numbered steps from the state in this DIR\n"
    "  --nodes FILE         with --output: Nodes from `kubectl get nodes -o json`\n"
    "  --namespace NS       of the Lease (default: $POD_NAMESPACE, else weft-system)\n"
    "  --lease NAME         default weft-controller\n"
    "  --instance NAME      marks the HyperNodes of this controller (default weft)\n"
    "  --label-prefix P/    of labels and annotations (default weft.dev/)\n"
    "  --label-rate N       Nodes labelled a second, at most (default 20)\n"
    "  --log-format F       logfmt or json      --log-level L   debug, info, warn, error\n"
    "  --version  --help\n"
    "\n"
    "Exit status: 0 done, 1 something failed or was refused, 2 wrong use.\n";

enum flag {
    FLAG_CONFIG = 256,
    FLAG_KUBECONFIG,
    FLAG_CONTEXT,
    FLAG_ONCE,
    FLAG_DRY_RUN,
    FLAG_OUTPUT,
    FLAG_AGAINST,
    FLAG_NODES,
    FLAG_NAMESPACE,
    FLAG_LEASE,
    FLAG_INSTANCE,
    FLAG_PREFIX,
    FLAG_LABEL_RATE,
    FLAG_CRD_RETRY,
    FLAG_LOG_FORMAT,
    FLAG_LOG_LEVEL,
    FLAG_VERSION,
    FLAG_HELP
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, FLAG_CONFIG},
    {"kubeconfig", required_argument, NULL, FLAG_KUBECONFIG},
    {"context", required_argument, NULL, FLAG_CONTEXT},
    {"once", no_argument, NULL, FLAG_ONCE},
    {"dry-run", no_argument, NULL, FLAG_DRY_RUN},
    {"output", required_argument, NULL, FLAG_OUTPUT},
    {"against", required_argument, NULL, FLAG_AGAINST},
    {"nodes", required_argument, NULL, FLAG_NODES},
    {"namespace", required_argument, NULL, FLAG_NAMESPACE},
    {"lease", required_argument, NULL, FLAG_LEASE},
    {"instance", required_argument, NULL, FLAG_INSTANCE},
    {"label-prefix", required_argument, NULL, FLAG_PREFIX},
    {"label-rate", required_argument, NULL, FLAG_LABEL_RATE},
    {"crd-retry", required_argument, NULL, FLAG_CRD_RETRY}, /* for tests; not in the help */
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
        {FLAG_CONFIG, &o->config}, {FLAG_KUBECONFIG, &o->kubeconfig}, {FLAG_CONTEXT, &o->context},
        {FLAG_OUTPUT, &o->output}, {FLAG_AGAINST, &o->against},       {FLAG_NODES, &o->nodes},
        {FLAG_NAMESPACE, &o->ns},  {FLAG_LEASE, &o->lease},           {FLAG_INSTANCE, &o->instance},
        {FLAG_PREFIX, &o->prefix},
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
    o->once = o->once || flag == FLAG_ONCE;
    o->dry_run = o->dry_run || flag == FLAG_DRY_RUN;
    o->version = o->version || flag == FLAG_VERSION;
    o->help = o->help || flag == FLAG_HELP;
    return flag == FLAG_ONCE || flag == FLAG_DRY_RUN || flag == FLAG_VERSION || flag == FLAG_HELP;
}

static int set_value(struct weft_options *o, int flag, const char *value, struct weft_error *err)
{
    uint64_t rate = 0;
    int rc = 0;
    switch (flag) {
    case FLAG_LABEL_RATE:
        rc = weft_parse_u64(weft_str(value), WEFT_LABELS_RATE_MAX, &rate);
        o->label_rate = (unsigned)rate;
        rc = rc == 0 && rate == 0 ? -ERANGE : rc;
        break;
    case FLAG_CRD_RETRY:
        rc = weft_parse_duration(weft_str(value), &o->crd_retry_ns);
        break;
    case FLAG_LOG_FORMAT:
        rc = weft_log_parse_format(value, &o->log_format);
        break;
    case FLAG_LOG_LEVEL:
        rc = weft_log_parse_level(value, &o->log_level);
        break;
    default:
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unknown option or missing value");
    }
    return rc < 0 ? weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "bad value '%s'", value) : 0;
}

/* [subdomain]/ as the prefix of label keys. */
static bool prefix_valid(const char *prefix)
{
    const size_t len = strlen(prefix);
    char domain[254];
    if (len < 2 || len > sizeof(domain) || prefix[len - 1] != '/') {
        return false;
    }
    memcpy(domain, prefix, len - 1);
    domain[len - 1] = '\0';
    return weft_dns_subdomain_valid(domain);
}

static int check(const struct weft_options *o, struct weft_error *err)
{
    const char *wrong = NULL;
    if (o->config == NULL) {
        wrong = "--config FILE is missing";
    } else if (o->against != NULL && o->output == NULL) {
        wrong = "--against needs --output";
    } else if (o->nodes != NULL && o->output == NULL) {
        wrong = "--nodes needs --output";
    } else if (o->nodes != NULL && o->kubeconfig != NULL) {
        wrong = "--nodes and --kubeconfig exclude each other";
    } else if (!prefix_valid(o->prefix)) {
        wrong = "--label-prefix must be a DNS subdomain and a slash";
    } else if (!weft_dns_label_valid(o->instance)) {
        wrong = "--instance must be a DNS label";
    } else if (!weft_dns_label_valid(o->ns)) {
        wrong = "--namespace must be a DNS label";
    } else if (!weft_dns_subdomain_valid(o->lease)) {
        wrong = "--lease must be a DNS subdomain";
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
        .label_rate = WEFT_LABELS_RATE_DEFAULT,
        .crd_retry_ns = 60 * WEFT_NS_PER_S,
        .log_format = WEFT_LOG_LOGFMT,
        .log_level = WEFT_LOG_INFO,
    };
    optind = 0; /* also forgets what an earlier parse was in the middle of */
    opterr = 0;
    int flag = 0;
    while ((flag = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        const char **slot = text_slot(&o, flag);
        const char *seen = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        if (slot != NULL) {
            *slot = optarg;
        } else if (!switch_flag(&o, flag)) {
            int rc = set_value(&o, flag, optarg != NULL ? optarg : "", err);
            if (rc < 0) {
                return weft_err_wrap(err, rc, "%s", seen);
            }
        }
    }
    if (optind < argc) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "unexpected argument '%s'",
                            argv[optind]);
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
