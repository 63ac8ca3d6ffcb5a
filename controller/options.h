/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weft-controller. */
#ifndef WEFT_CONTROLLER_OPTIONS_H
#define WEFT_CONTROLLER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/log.h"

/* Text is borrowed from argv, the environment, or static. */
struct weft_options {
    const char *config;     /* file; NULL with uninstall only */
    const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
    const char *context;    /* of the kubeconfig; NULL: its current one */
    const char *ns;         /* of the Lease and the Events about the controller */
    const char *lease;
    const char *instance;   /* our objects' app.kubernetes.io/instance */
    const char *prefix;     /* of labels and annotations, ends in "/" */
    const char *output;     /* folder; NULL: write to the API server */
    const char *against;    /* folder with the state before */
    const char *listen;     /* address of metrics and probes; NULL: none */
    const char *nodes;      /* file with the Nodes instead of the API server's; with output only */
    const char *volcano_ns; /* where Volcano is installed */
    const char *volcano_release; /* the name of its chart's release */
    const char *pods;            /* file with the pods that run; with dry_run or against only */
    bool once;                   /* also set by uninstall */
    bool uninstall;              /* config is NULL then */
    bool dry_run;
    bool help;
    bool version;
    unsigned label_rate;   /* a second */
    int64_t crd_retry_ns;  /* between looks for a missing CRD */
    int64_t watch_idle_ns; /* silence after which a watch counts as dead; 0: the default */
    enum weft_log_format log_format;
    enum weft_log_level log_level;
};

/* 0, or -EINVAL for wrong use with what is wrong. */
int weft_options_parse(int argc, char *const argv[], struct weft_options *ret_options,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* The text of --help. */
extern const char weft_options_usage[];

#endif
