/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the API server behind pkg/apply's requests: it holds HyperNodes with uid and
 * resourceVersion, checks preconditions as the real one does, feeds every change to the model of
 * Volcano's cache, and can be told to fail in a given way at a given write. Only creates of one
 * tier may be under way together; hypernode_server_answer answers one. */
#ifndef WEFT_TESTS_UNIT_HYPERNODE_SERVER_H
#define WEFT_TESTS_UNIT_HYPERNODE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/hypernode/hypernode.h"
#include "pkg/kube/client.h"

struct weft_model;

enum fault {
    FAULT_NONE,
    FAULT_STATUS_WRITE,   /* before it, somebody writes the object's status: a new version */
    FAULT_FOREIGN_CHANGE, /* before it, somebody changes the object's members */
    FAULT_DELETED,        /* before it, somebody deletes the object */
    FAULT_TAKEN,          /* before it, somebody creates an object of that name */
    FAULT_500,
    FAULT_500_DONE, /* it was done nevertheless */
    FAULT_429,
    FAULT_403,
    FAULT_LOST,      /* no answer, not done */
    FAULT_LOST_DONE, /* no answer, done */
    FAULT_NO_CRD,    /* a bare 404 */
    FAULT_SUBMIT,    /* the request cannot even be sent */
    FAULT_LATE,      /* no answer; done, but only after the next request was answered */
    FAULT_COUNT
};

enum { HYPERNODE_SERVER_REQUESTS = 8 };

/* A request under way. */
struct hypernode_request {
    struct hypernode_server *server;
    bool pending;
    enum weft_kube_verb verb;
    char path[256];
    char *body;
    char uid[64];
    char resource_version[64];
    int64_t tier; /* of a create */
    weft_kube_result_fn on_done;
    void *data;
};

struct hypernode_server {
    struct weft_hypernode_set set;
    struct weft_model *model;
    uint64_t version;
    unsigned submitted; /* write requests so far */
    unsigned writes;    /* of these, those that were answered */
    unsigned performed; /* of these, those that changed something */
    unsigned fault_at;  /* the write (1…) that meets fault; 0: none */
    enum fault fault;
    uint64_t fail_allocation; /* that many-th allocation inside each callback fails; 0: none */
    bool has_crd;             /* for the answer under way */
    bool fault_reads;         /* reads after that fail, until the next write */
    bool reads_fail;
    int worst;            /* worst outcome of the model after a write */
    const char *worst_at; /* what it was */
    /* requests under way; with shuffle, a random state, any of them is answered next, and one that
     * is cancelled may have been performed */
    struct hypernode_request requests[HYPERNODE_SERVER_REQUESTS];
    size_t under_way;
    size_t most_under_way;
    uint64_t shuffle;
    /* the request that is answered */
    enum weft_kube_verb verb;
    char path[256];
    char *body;
    char uid[64];
    char resource_version[64];
    weft_kube_result_fn on_done;
    void *data;
    /* a write that will be performed late */
    bool late;
    enum weft_kube_verb late_verb;
    char late_path[256];
    char *late_body;
    char late_uid[64];
    char late_version[64];
};

/* Takes a copy of set as what exists. */
void hypernode_server_init(struct hypernode_server *server, const struct weft_hypernode_set *set);
void hypernode_server_done(struct hypernode_server *server);
/* For weft_apply_env: client is the server, cast. */
int hypernode_server_submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                            struct weft_kube_call **ret_call, struct weft_error *err);
void hypernode_server_cancel(struct weft_kube_call *call);
/* Answers a request under way; false if there is none. */
bool hypernode_server_answer(struct hypernode_server *server);

#endif
