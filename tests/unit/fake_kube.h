/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTPS/1.1 server on 127.0.0.1 inside the test process, a thread a connection: a handler of the
 * test decides each answer, also the broken ones (cut, silent, never ending). What pkg/kube does on
 * HTTP/2 against the real thing is tested in tests/cluster. */
#ifndef WEFT_TESTS_UNIT_FAKE_KUBE_H
#define WEFT_TESTS_UNIT_FAKE_KUBE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/buf.h"
#include "tests/unit/fake_tls.h"

struct fake_kube;
struct weft_kube_client;
struct weft_loop;

struct fake_request {
    const char *method;
    const char *target;  /* path and query */
    const char *headers; /* raw lines */
    const char *body;    /* "" if none */
    unsigned connection; /* 1, 2, … in order of acceptance */
};

enum fake_end {
    FAKE_DONE, /* the answer is whole */
    FAKE_CUT,  /* the connection is closed before the answer is whole */
    FAKE_HOLD, /* nothing more is sent, the connection stays open */
};

struct fake_reply {
    int status;          /* 0: not a byte */
    const char *type;    /* NULL: application/json */
    const char *headers; /* more lines, each with CRLF; NULL: none */
    const char *body;    /* must live until the server is stopped */
    size_t body_len;     /* 0: strlen(body) */
    size_t piece;        /* bytes a TLS record; 0: all at once */
    bool stream;         /* chunked, as a watch; else with Content-Length */
    enum fake_end end;
};

/* Runs on a thread of the server, one at a time. */
typedef void (*fake_handler)(void *data, const struct fake_request *request,
                             struct fake_reply *reply);

/* tls NULL: plain HTTP. Takes tls over. port 0: any. */
struct fake_kube *fake_kube_start(SSL_CTX *tls, int port, fake_handler handler, void *data);
int fake_kube_port(const struct fake_kube *fake);
/* Takes or gives back the lock that handlers run under, to change what they see. */
void fake_kube_lock(struct fake_kube *fake, bool take);
/* Closes all connections and joins all threads. */
void fake_kube_stop(struct fake_kube *fake);

/* ---- answers in a fixed order ---- */

struct fake_step {
    const char *expect; /* "METHOD target" of the request, a prefix */
    struct fake_reply reply;
};

/* What the last request carried. */
struct fake_seen {
    char headers[2048], body[2048];
};

struct fake_script {
    pthread_mutex_t lock; /* for all below: the server's threads write */
    const struct fake_step *steps;
    size_t count;
    size_t next;         /* requests so far */
    struct weft_buf log; /* "METHOD target\n" of each, "UNEXPECTED " before one that is not next */
    size_t unexpected;
    struct fake_seen last;
};

void fake_script_init(struct fake_script *script, const struct fake_step *steps, size_t count);
void fake_script_done(struct fake_script *script);
/* How many requests came so far; the last of them (ret may be NULL). */
size_t fake_script_seen(struct fake_script *script, struct fake_seen *ret);
/* Requests that were not the next of the script; they are printed. */
size_t fake_script_unexpected(struct fake_script *script);
/* Runs the loop until the last step was asked for. */
bool fake_script_wait(struct fake_script *script, struct weft_loop *loop, int64_t timeout_ns);
/* A fake_handler over a script. */
void fake_script_answer(void *data, const struct fake_request *request, struct fake_reply *reply);

/* ---- all together ---- */

struct fake_rig {
    struct weft_loop *loop;
    struct fake_ca *ca;
    struct fake_kube *fake;
    struct weft_kube_client *client;
};

/* A server with a certificate for 127.0.0.1 and a client that trusts its CA, token "token-1". */
void fake_rig_open(struct fake_rig *rig, fake_handler handler, void *data);
void fake_rig_close(struct fake_rig *rig);
/* A client for the rig's server, with its CA unless cluster says otherwise. cluster and user are
 * parts of YAML flow mappings: "" or ", tls-server-name: y", and "token: x". server NULL:
 * https://127.0.0.1:PORT. */
struct weft_kube_client *fake_rig_client(struct fake_rig *rig, const char *server,
                                         const char *cluster, const char *user);

#endif
