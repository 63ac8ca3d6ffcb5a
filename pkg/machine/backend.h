/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor backend is: one file, discover-<vendor>.c, that fills one struct weft_backend. A
 * backend asks the vendor's library or sysfs what is there and builds a machine from it; the rules
 * that turn answers into B, T and N stand in machine-internal.h, PCI and NUMA in host.h.
 *
 * Thread rule: all functions of one opened backend run on one thread, the vendor thread (the only
 * thread of a CLI). Vendor libraries may hang, so nobody waits for that thread: a backend tells
 * before each call into a vendor's code what it calls (weft_backend_enter), and another thread
 * that looks at the watch sees for how long. */
#ifndef WEFT_MACHINE_BACKEND_H
#define WEFT_MACHINE_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/machine/machine.h"

enum {
    WEFT_BACKEND_CALLS_MAX = 64 /* kinds of calls that are told apart; the last takes the rest */
};

/* How often one kind of call was made, and how long it took in all. */
struct weft_backend_calls {
    _Atomic(const char *) call; /* static storage; NULL: none of that kind, nor behind it */
    _Atomic(uint64_t) count;
    _Atomic(int64_t) total_ns;
};

/* Which vendor call is under way. Zeroed by its owner, who keeps it until the backend is closed;
 * written by the vendor thread, read by any (weft_backend_late). */
struct weft_backend_watch {
    _Atomic(int64_t) since_ns;   /* monotonic; 0: none */
    _Atomic(int64_t) allowed_ns; /* what the call may take by itself: an event wait's timeout */
    _Atomic(const char *) call;  /* static storage: "nvmlDeviceGetUUID" */
    _Atomic(unsigned) calls;     /* how many were begun; for tests */
    /* those that are over, without waits for events */
    struct weft_backend_calls kinds[WEFT_BACKEND_CALLS_MAX];
};

struct weft_backend_options {
    /* Where the host's file system is seen: "/host" in a container; NULL or "": as it is. /sys,
     * /proc and /dev are looked at below it; device nodes are named without it. */
    const char *host_root;
    /* Where the driver's user files are, if not in the host's own places: "/run/nvidia/driver". */
    const char *driver_root;
    /* The folder of the host whose /dev has the driver's nodes, where that is not the host's own:
     * "/run/nvidia/driver"; NULL or "": the host's. Device nodes are named without it. */
    const char *dev_root;
    /* Tests: the vendor library to load instead of searching for one. */
    const char *library;
    /* Only this vendor's backend; NULL: all. */
    const char *vendor;
    /* Is an error code that the vendor's driver told (for NVIDIA an XID) a fault of the device?
     * NULL: each is. Vendor thread. */
    bool (*is_fault)(void *data, uint64_t code);
    void *is_fault_data;
    /* May be NULL: nobody looks. */
    struct weft_backend_watch *watch;
};

enum weft_backend_event_kind {
    WEFT_EVENT_UNHEALTHY, /* the device must get no more work, until enumerate calls it healthy */
    WEFT_EVENT_NOTICE,    /* worth a log line and a count; changes nothing: an ignored XID */
    WEFT_EVENT_CHANGED,   /* enumerate again: partitions changed, a device came or went */
    WEFT_EVENT_COUNT
};

struct weft_backend_event {
    enum weft_backend_event_kind kind;
    char device[WEFT_DEVICE_ID_MAX]; /* "": all devices of the machine */
    uint64_t code;                   /* the vendor's: an XID; 0 if there is none */
    bool again;      /* what the event before told, for another device that it is of */
    char reason[96]; /* one sentence, fits weft_device.health_reason */
};

struct weft_backend {
    const char *vendor; /* weft_machine.vendor: "nvidia" */
    /* May this vendor's hardware or driver be here? Looks at a few files, calls no vendor code,
     * takes no memory that stays; called every half minute on nodes without a GPU. */
    bool (*probe)(const struct weft_backend_options *options);
    /* Loads what is needed. *ret_state is the backend's, for close. The strings of options must
     * live until then. -ENODEV: no driver; other -errno. The message is a reason for a person. */
    int (*open)(const struct weft_backend_options *options, void **ret_state,
                struct weft_error *err);
    /* The machine as it is now; the caller owns it. Two calls on an unchanged machine give equal
     * ones. A device that was there and is lost stays, unhealthy, with its last wiring; one whose
     * answer to some question fails is here with that value unknown and a warning, and SUSPECT
     * where the answer leaves in doubt whether it works. What a look finds is told as it is now:
     * how long it has to last is not for a backend to say. Fails only
     * without memory, or if the vendor's library as a whole does not answer any more. */
    int (*enumerate)(void *state, struct weft_machine **ret_machine, struct weft_error *err);
    /* Waits for an event: 1 and *ret_event, 0 after timeout_ns, -ENOTSUP (at once) if there are no
     * events to wait for here and looking again now and then is all one can do; other negative: the
     * library does not work any more, close and open again. NULL: no events at all. */
    int (*wait)(void *state, int64_t timeout_ns, struct weft_backend_event *ret_event,
                struct weft_error *err);
    void (*close)(void *state); /* NULL is fine */
};

/* All backends, in the order in which they are tried; ends with NULL. */
extern const struct weft_backend *const weft_backends[];

/* The vendor thread calls into vendor code, which by itself may take allowed_ns (a timeout), and
 * is back. call has static storage; watch may be NULL. */
void weft_backend_enter(struct weft_backend_watch *watch, const char *call, int64_t allowed_ns);
void weft_backend_leave(struct weft_backend_watch *watch);
/* Any thread: by how much the call under way is over its time at now_ns, if each may take limit_ns
 * (and what it takes by itself); negative: so much time is left; INT64_MIN: no call under way.
 * *ret_call names it. */
int64_t weft_backend_late(const struct weft_backend_watch *watch, int64_t now_ns, int64_t limit_ns,
                          const char **ret_call);

/* options->host_root as a prefix: "" where there is none, never with a slash at its end. Into path
 * of WEFT_MACHINE_PATH_MAX bytes: "<host root><suffix>". -ENAMETOOLONG. */
int weft_backend_host_path(const struct weft_backend_options *options, const char *suffix,
                           char *path) __attribute__((warn_unused_result));
/* Is the host root a folder that can be looked into? A typo must not look like a host without
 * devices. -errno with a message. */
int weft_backend_check_root(const struct weft_backend_options *options, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Is there anything at that path of the host? */
bool weft_backend_host_has(const struct weft_backend_options *options, const char *suffix);

#endif
