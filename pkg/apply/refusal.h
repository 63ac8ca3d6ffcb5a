/* SPDX-License-Identifier: Apache-2.0 */
/* A change that is wanted and held back until somebody accepts it: what `weftctl accept` lists and
 * what the status shows. Values only. */
#ifndef WEFT_APPLY_REFUSAL_H
#define WEFT_APPLY_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_json;

enum weft_refusal_kind {
    WEFT_REFUSAL_BRAKE,   /* too many Nodes of a source would move, or lose their place */
    WEFT_REFUSAL_TIERS,   /* which tierName stands for which tier would change */
    WEFT_REFUSAL_FOREIGN, /* another owner's HyperNodes use a tierName for another tier */
    WEFT_REFUSAL_MOVE,    /* Nodes with pods of a running gang; goes on by itself after moveDelay */
    WEFT_REFUSAL_KIND_COUNT
};

/* hash and target are 16 hexadecimal digits. A source can be held once, the rest of a cluster a few
 * times: there are never more than WEFT_REFUSALS_MAX. */
enum { WEFT_REFUSAL_HASH_MAX = 17, WEFT_REFUSAL_TEXT_MAX = 512, WEFT_REFUSALS_MAX = 68 };

struct weft_refusal {
    enum weft_refusal_kind kind;
    char hash[WEFT_REFUSAL_HASH_MAX];   /* names this very change: from where to where */
    char target[WEFT_REFUSAL_HASH_MAX]; /* names where it leads: a change that was accepted and cut
                                           short by a crash is known again by it */
    char text[WEFT_REFUSAL_TEXT_MAX];   /* one sentence for people */
};

/* Words that wait at once; of more the rest is not looked at. */
enum { WEFT_ACCEPTANCES_MAX = 64 };

struct weft_refusals {
    struct weft_refusal items[WEFT_REFUSALS_MAX];
    size_t count;
};

/* What somebody accepted: as a refusal showed it. target "": only the hash is known. */
struct weft_acceptance {
    char hash[WEFT_REFUSAL_HASH_MAX];
    char target[WEFT_REFUSAL_HASH_MAX];
};

/* Is that very change among the accepted ones, or what is left of one? *ret_index: which. */
bool weft_refusal_accepted(const struct weft_refusal *refusal,
                           const struct weft_acceptance *accepted, size_t count, size_t *ret_index);

/* Where accepted changes stand, in the namespace of the controller's Lease: a key a change, its
 * hash; value "<RFC 3339 time> <target>", both optional. A word is good for a day from its time:
 * the cluster it was about is another one then. */
#define WEFT_ACCEPTED_SUFFIX "-accepted"
#define WEFT_ACCEPTED_GOOD_FOR_S INT64_C(86400)
/* Reads the ConfigMap's data. now: realtime, ns. Returns how many. */
size_t weft_accepted_read(const struct weft_json *configmap, int64_t now,
                          struct weft_acceptance accepted[WEFT_ACCEPTANCES_MAX]);
/* Is that text a hash? */
bool weft_refusal_is_hash(const char *text);

/* Where refusals are shown: in the document under this key of the ConfigMap "<instance>-status", as
 * refusedChanges. `weftctl accept` reads it. */
#define WEFT_STATUS_SUFFIX "-status"
#define WEFT_STATUS_DOCUMENT "status.json"
/* Reads the ConfigMap; what is not understood is left out. */
void weft_refusals_read(const struct weft_json *configmap, struct weft_refusals *ret_refusals);

/* "brake", "tiers", "foreign-tier", "move"; static. */
const char *weft_refusal_kind_name(enum weft_refusal_kind kind);

#endif
