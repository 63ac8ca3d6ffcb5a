/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a request should get: the objective of allocation.md, exact to 16 devices. Pure:
 * a machine and a request in, a set out; no I/O, clock or globals. The tables (what depends on the
 * machine alone) are built once per machine change by weft_allocator_new and are read-only after
 * that, so any number of threads may pick from one allocator. */
#ifndef WEFT_ALLOCATOR_ALLOCATOR_H
#define WEFT_ALLOCATOR_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_machine;
struct weft_allocator;

enum weft_policy { WEFT_POLICY_PERFORMANCE, WEFT_POLICY_PACKED, WEFT_POLICY_COUNT };

/* The key of allocation.md, by entry, for the set that was chosen. */
struct weft_objective {
    uint32_t components;     /* 1 */
    uint64_t min_cut_mbps;   /* 2: 0 for several components or one device; of more than 256 kinds of
                                devices in one set an upper bound, the smallest degree */
    int worst_tier;          /* 3: -1 = no pair without a direct link */
    uint32_t sockets;        /* 4 */
    uint32_t numa_nodes;     /* 4 */
    uint32_t broken_groups;  /* 5a */
    uint32_t leftover;       /* 5b */
    uint32_t nic_near;       /* 6a */
    uint32_t nic_distinct;   /* 6b */
    uint64_t bandwidth_mbps; /* 7 */
    uint32_t tier_sum;       /* 7 */
};

struct weft_request {
    /* Device numbers (index into machine->devices), any order; unknown numbers, duplicates and
     * unhealthy devices are dropped, and required ones that are not available. */
    const size_t *available;
    size_t available_count;
    const size_t *required;
    size_t required_count;
    int64_t size;
    enum weft_policy policy;
};

struct weft_choice {
    size_t *devices; /* in device order (allocation.md entry 8), owned */
    size_t count;
    bool exact; /* false: a bounded search was used */
    struct weft_objective objective;
};

/* Copies what it needs; machine may go afterwards. -ENOMEM, -EINVAL. */
int weft_allocator_new(const struct weft_machine *machine, struct weft_allocator **ret_allocator,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* The same without the tables: at hand at once after a change of the machine, while another thread
 * builds those. Picks give the same answers, more slowly above a dozen devices. */
int weft_allocator_new_direct(const struct weft_machine *machine,
                              struct weft_allocator **ret_allocator, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_allocator_free(struct weft_allocator *allocator);
WEFT_DEFINE_AUTO(struct weft_allocator, weft_allocator_free)

/* Chooses. Only lack of memory makes it fail; the answer always satisfies M ⊆ S ⊆ A, |S| = k after
 * the clipping that allocation.md "Request" states. The caller owns *ret_choice's content. */
int weft_allocator_pick(const struct weft_allocator *allocator, const struct weft_request *request,
                        struct weft_choice *ret_choice, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_choice_done(struct weft_choice *choice);
WEFT_DEFINE_AUTO_VALUE(struct weft_choice, weft_choice_done)

/* ---- why ---- */

/* The entries of the key, in the order of policy performance; 8 is the device order. */
enum weft_entry {
    WEFT_ENTRY_COMPONENTS,
    WEFT_ENTRY_MIN_CUT,
    WEFT_ENTRY_WORST_TIER,
    WEFT_ENTRY_SOCKETS,
    WEFT_ENTRY_NUMA_NODES,
    WEFT_ENTRY_BROKEN_GROUPS,
    WEFT_ENTRY_LEFTOVER,
    WEFT_ENTRY_NIC_NEAR,
    WEFT_ENTRY_NIC_DISTINCT,
    WEFT_ENTRY_BANDWIDTH,
    WEFT_ENTRY_TIER_SUM,
    WEFT_ENTRY_ORDER,
    WEFT_ENTRY_COUNT
};

/* Compares two objectives: negative if x is better, and *ret_entry the first entry in which they
 * differ under the policy; 0 and WEFT_ENTRY_ORDER if none does. */
int weft_objective_compare(enum weft_policy policy, const struct weft_objective *x,
                           const struct weft_objective *y, enum weft_entry *ret_entry);
/* The value of an entry; 0 for WEFT_ENTRY_ORDER. */
int64_t weft_objective_value(const struct weft_objective *o, enum weft_entry entry);
/* "components", "min_cut_mbps"…: the fields of struct weft_objective; "order". */
const char *weft_entry_name(enum weft_entry entry);

/* Chooses, and the best of all other sets of that size, which the choice had to beat. No other is
 * there where nothing was to be chosen: then *ret_other has count 0. other->exact says whether it
 * is surely the best other one. Takes about as long as size picks. -ENOMEM. */
int weft_allocator_pick_two(const struct weft_allocator *allocator,
                            const struct weft_request *request, struct weft_choice *ret_choice,
                            struct weft_choice *ret_other, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A group of allocation.md, and by what its devices belong together: any of these may hold. */
struct weft_group {
    int level;      /* the least distance class that joins them, -1 none */
    int socket;     /* their socket, -1 none */
    int parent;     /* their parent GPU's index, -1 none */
    uint64_t links; /* the greatest bandwidth in MB/s that joins them, 0 none */
};
size_t weft_allocator_group_count(const struct weft_allocator *allocator);
struct weft_group weft_allocator_group(const struct weft_allocator *allocator, size_t group);
/* Is the device (its number in the machine) in the group? */
bool weft_allocator_group_has(const struct weft_allocator *allocator, size_t group, size_t device);
/* Devices with equal numbers are interchangeable: swapping them changes nothing. */
size_t weft_allocator_class_of(const struct weft_allocator *allocator, size_t device);

/* ---- several ids a device (time-slicing) ---- */

enum weft_sharing { WEFT_SHARING_DISTRIBUTED, WEFT_SHARING_PACKED, WEFT_SHARING_COUNT };

/* One id: a device and the number of the replica, below the device's total. */
struct weft_replica {
    size_t device;
    uint32_t number;
};

struct weft_replica_request {
    /* As in weft_request: any order; what cannot be is dropped. */
    const struct weft_replica *available;
    size_t available_count;
    const struct weft_replica *required;
    size_t required_count;
    const uint32_t *totals; /* ids of each device of the machine, by device number */
    int64_t size;
    enum weft_policy policy;
    enum weft_sharing sharing;
};

struct weft_replica_choice {
    struct weft_replica *ids; /* in device order, then by number; owned */
    size_t count;
    bool exact;
};

enum { WEFT_REPLICAS_MAX = 1 << 20 }; /* ids of a machine, all devices together */

/* Chooses ids as allocation.md "Several ids per physical device" says. -ENOMEM, and -EFBIG over
 * WEFT_REPLICAS_MAX. */
int weft_allocator_pick_replicas(const struct weft_allocator *allocator,
                                 const struct weft_replica_request *request,
                                 struct weft_replica_choice *ret_choice, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_replica_choice_done(struct weft_replica_choice *choice);
WEFT_DEFINE_AUTO_VALUE(struct weft_replica_choice, weft_replica_choice_done)

const char *weft_policy_name(enum weft_policy policy);
/* 0 or -EINVAL. */
int weft_policy_parse(const char *text, enum weft_policy *ret_policy);

#endif
