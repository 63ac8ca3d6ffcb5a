/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways of registering share. Not for other modules. */
#ifndef WEFT_DEVICEPLUGIN_LINK_INTERNAL_H
#define WEFT_DEVICEPLUGIN_LINK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "deviceplugin/folder.h"
#include "deviceplugin/link.h"
#include "deviceplugin/rivalry.h"
#include "pkg/base/clock.h"

enum { WEFT_LINK_MAGIC = 0x4c696e6b /* "Link" */, WEFT_LINK_OTHERS_MAX = 512 };

/* After an event: several come together when a kubelet starts, and it listens a moment after it
 * made its socket. */
#define WEFT_LINK_SETTLE_NS (30 * WEFT_NS_PER_MS)
#define WEFT_LINK_RETRY_MIN_NS (1 * WEFT_NS_PER_S)
#define WEFT_LINK_RETRY_MAX_NS (30 * WEFT_NS_PER_S)

struct weft_claim;
struct weft_dirwatch;
struct weft_rpc_request;
struct weft_timer;

struct weft_link {
    uint32_t magic;
    struct weft_link_options options;
    char slug[WEFT_FOLDER_NAME_MAX];
    char *kubelet_path;
    struct weft_timer *soon; /* the next step is due */
    int64_t soon_ns;         /* when, 0: not planned */
    struct weft_timer *look; /* slowly, for what inotify does not tell */
    struct weft_dirwatch *watch;
    struct weft_file_identity watched; /* the folder under watch */
    struct weft_dirwatch *registry_watch;
    struct weft_file_identity registry_watched;

    /* who may register */
    struct weft_claim *claim;
    bool standby;                         /* another process of ours has the claim */
    int64_t unasked_ns;                   /* since when the claim cannot be looked at, 0: it can */
    int64_t took_over_ns;                 /* when the claim came from another, 0: it did not */
    struct weft_rivalry rivalry;          /* with plugins that are not ours */
    char rival[WEFT_FOLDER_NAME_MAX];     /* the socket of one that is there; "" none is seen */
    bool away;                            /* from a rival, seen or not, until not_before_ns */
    struct weft_file_identity checkpoint; /* the kubelet's, as it was looked at last */
    unsigned strange_looks;               /* so often it had another plugin's devices, in a row */
    int64_t usurped_ns;                   /* when to take the resource back, 0: it is ours */

    /* the current generation */
    unsigned generation; /* of the next socket */
    char name[WEFT_FOLDER_NAME_MAX];
    char *path; /* NULL: not serving */
    struct weft_file_identity socket;
    struct weft_rpc_request *request; /* a Register under way */
    bool used;                        /* this socket was registered once */
    bool registered;                  /* and the kubelet still knows us, as far as we know */
    bool stream_seen;                 /* it has opened ListAndWatch on this socket */
    int64_t registered_ns;
    struct weft_file_identity kubelet; /* the kubelet.sock that was seen last */

    int64_t not_before_ns; /* no new attempt earlier */
    int64_t retry_ns;      /* the next delay after a failure */
    uint64_t seed;         /* of spreading */
    int64_t idle_ns;     /* plugin watcher: since when nobody streams from a socket that is there */
    bool waiting_said;   /* "waiting for the kubelet" was logged */
    bool no_folder_said; /* that its folder is not there was */
    bool watch_failed_said;
    bool claim_failed_said;
    bool refused_said;
};

int64_t weft_link_now(void);
/* Makes the next step run after delay_ns, or earlier if that is already planned. */
void weft_link_step_within(struct weft_link *link, int64_t delay_ns);
/* A new socket that accepts connections, in the folder that the way of registering wants. */
int weft_link_serve(struct weft_link *link, struct weft_error *err);
void weft_link_close(struct weft_link *link);
bool weft_link_socket_is_ours(const struct weft_link *link);
/* An attempt failed: says so and plans the next. */
void weft_link_plan_retry(struct weft_link *link, const struct weft_error *why);
/* The kubelet knows us now. */
void weft_link_note_registered(struct weft_link *link);
/* The stream ended, or never came, at a kubelet that lives: says so, and steps back if that means
 * that somebody else registers this resource. */
void weft_link_note_loss(struct weft_link *link);
/* Must we wait? Plans the next step if so. */
bool weft_link_must_wait(struct weft_link *link);

/* The next step of each way. */
void weft_link_step_classic(struct weft_link *link);
void weft_link_step_watched(struct weft_link *link);

#endif
