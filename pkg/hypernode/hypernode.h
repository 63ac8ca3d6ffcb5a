/* SPDX-License-Identifier: Apache-2.0 */
/* Volcano's HyperNode, typed (topology.volcano.sh/v1alpha1; volcano-sh/volcano
 * config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml), and sets of them. Pure. */
#ifndef WEFT_HYPERNODE_HYPERNODE_H
#define WEFT_HYPERNODE_HYPERNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_json;
struct weft_json_writer;

#define WEFT_HYPERNODE_API_VERSION "topology.volcano.sh/v1alpha1"
#define WEFT_LABEL_SOURCE "volcano.sh/network-topology-source"
#define WEFT_LABEL_SOURCE_VALUE "weft"
#define WEFT_LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define WEFT_LABEL_MANAGED_BY_VALUE "weft-controller"
#define WEFT_LABEL_INSTANCE "app.kubernetes.io/instance"

enum weft_member_type { WEFT_MEMBER_NODE, WEFT_MEMBER_HYPERNODE, WEFT_MEMBER_TYPE_COUNT };
/* weft writes exactMatch only; the others are read from foreign objects. */
enum weft_selector {
    WEFT_SELECTOR_EXACT,
    WEFT_SELECTOR_REGEX,
    WEFT_SELECTOR_LABEL,
    WEFT_SELECTOR_NONE,
    WEFT_SELECTOR_COUNT
};

struct weft_member {
    enum weft_member_type type;
    enum weft_selector selector;
    char *name; /* exactMatch name or regexMatch pattern; "" for label and none */
};

struct weft_hypernode {
    char *name;
    int64_t tier;
    char *tier_name;             /* "" if the object has none (CRDs before v1.14 prune it) */
    struct weft_member *members; /* sorted: type, then name */
    size_t member_count;
    size_t member_cap;
    char *identity;   /* annotation <prefix>identity; "" if none */
    char *source;     /* label volcano.sh/network-topology-source; "" if none */
    char *managed_by; /* label app.kubernetes.io/managed-by */
    char *instance;   /* label app.kubernetes.io/instance */
    /* what others put on the object: labels, annotations, finalizers, ownerReferences, as the JSON
       text of a metadata with these alone; "" if none. A PUT must carry it on. */
    char *others;
    char *uid;              /* from the server, else "" */
    char *resource_version; /* from the server, else "" */
    bool terminating;       /* deletionTimestamp is set */
    bool reordered;         /* as read, its members were not in their order, or one stood twice */
    /* Of an object in a view: another owner listed a child of it too, and does not any more. If
     * that one was deleted, Volcano's cache has torn the child from this object as well
     * (docs/hypernodes.md) until this object's members are written anew, be it in another order. */
    bool torn;
};

/* A set keyed by name, sorted by name (strcmp). */
struct weft_hypernode_set {
    struct weft_hypernode *items;
    size_t count;
    size_t cap;
};

enum { WEFT_HYPERNODES_MAX = 200000, WEFT_HYPERNODE_MEMBERS_MAX = 20000 };

void weft_hypernode_done(struct weft_hypernode *hn);
WEFT_DEFINE_AUTO_VALUE(struct weft_hypernode, weft_hypernode_done)
int weft_hypernode_copy(const struct weft_hypernode *from, struct weft_hypernode *ret_to)
    __attribute__((warn_unused_result));
/* Same tier, tierName, members, identity and owner labels? (uid and resourceVersion apart) */
bool weft_hypernode_same(const struct weft_hypernode *a, const struct weft_hypernode *b);
/* Ours: source, managed-by and instance labels all match. */
bool weft_hypernode_is_ours(const struct weft_hypernode *hn, const char *instance);
/* By exactMatch. */
bool weft_hypernode_lists(const struct weft_hypernode *hn, enum weft_member_type type,
                          const char *name);
/* Appends a member (name copied); call weft_hypernode_sort when all are in. 0, -ENOMEM, or -EFBIG
 * over WEFT_HYPERNODE_MEMBERS_MAX. */
int weft_hypernode_add_member(struct weft_hypernode *hn, enum weft_member_type type,
                              enum weft_selector selector, const char *name)
    __attribute__((warn_unused_result));
/* Brings the members into their order and drops exact repeats. */
void weft_hypernode_sort(struct weft_hypernode *hn);
/* The order of members: type, name, selector. */
int weft_member_cmp(const struct weft_member *a, const struct weft_member *b);
/* Are type, selector and name of all members equal? */
bool weft_hypernode_same_members(const struct weft_hypernode *a, const struct weft_hypernode *b);
/* Sets one of the text fields to a copy: weft_hypernode_set_text(&hn.tier_name, "leaf"). */
int weft_hypernode_set_text(char **field, const char *text) __attribute__((warn_unused_result));
/* A text field, "" where it is NULL. */
const char *weft_hypernode_text(const char *field);

void weft_hypernode_set_done(struct weft_hypernode_set *set);
WEFT_DEFINE_AUTO_VALUE(struct weft_hypernode_set, weft_hypernode_set_done)
/* Adds or replaces by name; the set takes over hn's content (hn is emptied) on success. */
int weft_hypernode_set_put(struct weft_hypernode_set *set, struct weft_hypernode *hn)
    __attribute__((warn_unused_result));
/* For many objects at once: append in any order (names must be new), then sort once; until then no
 * other call on the set. The set takes over hn's content on success. */
int weft_hypernode_set_append(struct weft_hypernode_set *set, struct weft_hypernode *hn)
    __attribute__((warn_unused_result));
void weft_hypernode_set_sort(struct weft_hypernode_set *set);
/* true and *ret_index (may be NULL) if there. */
bool weft_hypernode_set_find(const struct weft_hypernode_set *set, const char *name,
                             size_t *ret_index);
/* Borrowed, or NULL. */
const struct weft_hypernode *weft_hypernode_set_get(const struct weft_hypernode_set *set,
                                                    const char *name);
/* Borrowed, for lists in another order than the set's. */
struct weft_hypernode_ref {
    const struct weft_hypernode *hn;
};
/* Tiers ascending, then by name: children before parents. */
void weft_hypernode_refs_sort(struct weft_hypernode_ref *refs, size_t count);
/* All of the set in that order; the caller frees the array (set->count entries). NULL without
 * memory. */
struct weft_hypernode_ref *weft_hypernode_set_ascending(const struct weft_hypernode_set *set)
    __attribute__((warn_unused_result));
bool weft_hypernode_set_remove(struct weft_hypernode_set *set, const char *name);
int weft_hypernode_set_copy(const struct weft_hypernode_set *from,
                            struct weft_hypernode_set *ret_to) __attribute__((warn_unused_result));

/* From an API object or manifest; prefix is the label/annotation prefix ("weft.dev/"). Errors name
 * file, line and field. */
int weft_hypernode_from_json(const struct weft_json *object, const char *prefix,
                             struct weft_hypernode *ret_hn, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The object for POST and manifests, or with_version for PUT: then with uid, resourceVersion and
 * what others put on it. */
void weft_hypernode_to_json(const struct weft_hypernode *hn, const char *prefix, bool with_version,
                            struct weft_json_writer *w);

#endif
