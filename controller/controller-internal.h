/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the controller's files share; each owns the part that its section names. */
#ifndef WEFT_CONTROLLER_CONTROLLER_INTERNAL_H
#define WEFT_CONTROLLER_CONTROLLER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/debounce.h"
#include "controller/decide.h"
#include "controller/observe.h"
#include "controller/tell.h"
#include "controller/view.h"
#include "pkg/base/error.h"
#include "pkg/hypernode/pods.h"
#include "pkg/source/source.h"

struct weft_accept;
struct weft_apply;
struct weft_config;
struct weft_dirwatch;
struct weft_events;
struct weft_gangs;
struct weft_http;
struct weft_instances;
struct weft_keep;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_lease;
struct weft_kube_reflector;
struct weft_labels;
struct weft_loop;
struct weft_options;
struct weft_signal;
struct weft_sources;
struct weft_timer;

/* refusals of single objects in a pass, beyond which it is the server that refuses */
enum { WEFT_STUCK_MAX = 16 };
enum { WEFT_CONTROLLER_MAGIC = 0x77637472, WEFT_CONTROLLER_IDENTITY_MAX = 320 };

struct weft_controller {
    unsigned magic;
    const struct weft_options *options;
    struct weft_names_of_ours ours;
    struct weft_loop *loop;
    struct weft_kube_client *client;
    struct weft_events *events;
    char identity[WEFT_CONTROLLER_IDENTITY_MAX]; /* of this process */
    struct weft_signal *signals[3];

    /* reload.c: the configuration in use */
    struct weft_config *config;
    char *config_text;
    struct weft_dirwatch *config_watch;
    struct weft_timer *reread; /* soon after something happened in the configuration's folder */
    char config_error[WEFT_ERROR_MESSAGE_MAX]; /* why the file as it is now is not in use, or "" */
    struct weft_timer *poll;                   /* files that no watch reports */

    /* sources.c: what they say */
    struct weft_sources *sources;
    enum weft_source_state source_states[WEFT_CONFIG_SOURCES_MAX]; /* as told last */
    uint64_t passes;                                               /* so far: looks at labels */
    char *epoch; /* of the cabling, read last; NULL: none */

    /* watch.c: what is there */
    struct weft_view_nodes nodes;
    struct weft_view_hypernodes hypernodes;
    struct weft_hypernode_set lost;    /* of ours, deleted by others; see lost.h */
    struct weft_hypernode_set against; /* --against: stands for the HyperNodes that exist */
    struct weft_pods pods;             /* --pods */
    struct weft_kube_reflector *node_reflector;
    struct weft_kube_reflector *hypernode_reflector;
    struct weft_instances *instances; /* NULL: no source needs them */
    bool nodes_synced;
    int64_t nodes_listing_since; /* monotonic; of the list last begun */
    bool hypernodes_synced;
    bool crd_missing;
    bool crd_was_missing; /* and we have made no HyperNode since */

    /* schema.c: does the server keep tierName */
    struct weft_kube_call *schema_call;
    unsigned schema_polls;
    bool tier_name_served;

    /* leader.c: may we write */
    struct weft_kube_lease *lease;
    bool leading;
    bool stopping;
    struct weft_timer *deadline; /* of stopping, and of --once waiting for the Lease */
    bool forced;
    char other_holder[WEFT_CONTROLLER_IDENTITY_MAX]; /* of the Lease, last seen; "" = none */
    char lease_told[WEFT_ERROR_MESSAGE_MAX];         /* the Lease's error in the log, and */
    int64_t lease_told_at;                           /* when it was told; monotonic */
    struct weft_error last_error;                    /* met at the API server; code 0 = none */
    int64_t last_error_at;                           /* monotonic */
    int64_t failing_since; /* monotonic; of a run that ends; 0 = the last list got through */

    /* pass.c: what to write */
    struct weft_debounce debounce;
    struct weft_timer *tick;
    struct weft_timer *trim; /* gives memory back when no pass ran for a while */
    struct weft_keep *keep;
    struct weft_accept *accept;
    struct weft_gangs *gangs;
    struct weft_decision decision;
    struct weft_apply *apply;
    const struct weft_plan *applied; /* by it: decision's, or repair */
    struct weft_plan repair;         /* of what is lost, while no source says what is wanted */
    struct weft_plan around;         /* of decision, less what the server would not write */
    char stuck[WEFT_STUCK_MAX][64];  /* HyperNodes that it would not write in this pass */
    size_t stuck_count;
    struct weft_labels *labels;
    int64_t keep_due;   /* monotonic; a kept Node may be forgotten then */
    int64_t not_before; /* monotonic; no pass until then (back-off) */
    unsigned failures;  /* passes in a row that did not get through */
    uint64_t last_plan; /* hash of the plan that was carried out last */
    int64_t last_plan_at;
    unsigned same_plans;   /* how often in a row it was that one */
    unsigned stale;        /* plans in a row that met a conflict and wrote nothing */
    unsigned labels_stale; /* so with labels */
    bool slowed;           /* its repetition was put off once already */
    uint64_t jitter;       /* state of the random generator */

    struct weft_tell tell; /* tell.c: what people are told */

    /* observe.c: what is shown of it */
    struct weft_http *http; /* NULL: not asked for */
    struct weft_controller_stats stats;

    bool done; /* the loop may end */
    int exit_status;
};

/* reload.c */
int weft_controller_load_config(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_controller_watch_files(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_controller_reload(struct weft_controller *c);

/* sources.c */
int weft_controller_start_sources(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Results by source, for a decision. -ENODATA if one has none: then nothing may be decided. */
int weft_controller_results(const struct weft_sources *sources, const struct weft_config *config,
                            const struct weft_source_result **results, struct weft_error *err)
    __attribute__((warn_unused_result));
/* How often each was looked at; a labels source is looked at in each pass. */
void weft_controller_looks(struct weft_controller *c, uint64_t looks[WEFT_CONFIG_SOURCES_MAX]);
/* The epoch of the cabling now, from the configuration's file or from weft's own; NULL: nobody
 * counts one. Borrowed until the next call. */
const char *weft_controller_epoch(struct weft_controller *c);
void weft_controller_say_sources(struct weft_controller *c);

/* watch.c */
int weft_controller_start_watching(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
/* A new leader lists again by quorum read: what the leader before wrote last is in it. */
int weft_controller_lead(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_controller_stop_watching(struct weft_controller *c);
bool weft_controller_synced(const struct weft_controller *c);

/* schema.c */
bool weft_controller_prunes_tier_name(const struct weft_controller *c);
/* Asks the server, if our objects lack tierName: at once, or now and then. */
void weft_controller_probe_schema(struct weft_controller *c, bool now);

/* leader.c */
int weft_controller_start_leader(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
/* May a write start now? */
bool weft_controller_may_write(const struct weft_controller *c);
/* Stops writing, gives the Lease up after the last answer, ends the loop. */
void weft_controller_stop(struct weft_controller *c, int exit_status);
/* A write has been answered: goes on with stopping, if that waits for it. */
void weft_controller_settled(struct weft_controller *c);

/* The API server, or a way to it, failed. A run that is to end by itself is ended if no later try
 * can do better, or if it has waited for long enough. */
void weft_controller_met_error(struct weft_controller *c, const struct weft_error *error);

/* Does this run only read? Then it needs no Lease. */
bool weft_controller_reads_only(const struct weft_controller *c);

/* pass.c */
int weft_controller_pass_init(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_controller_pass_done(struct weft_controller *c);
/* Looks at what is due and sets the timer for what is next. */
void weft_controller_schedule(struct weft_controller *c);
/* Something changed; rush: what must not wait. */
void weft_controller_changed(struct weft_controller *c, bool rush);
int64_t weft_controller_now(void);
bool weft_controller_any_of_ours(const struct weft_controller *c); /* HyperNodes */

#endif
