/* SPDX-License-Identifier: Apache-2.0 */
/* The release phase. Objects that survive let go of what leaves them. An object that would be left
 * empty must be replaced, which its parent must know before the parent's own write: so the phase is
 * first played through from the bottom up without writing, to learn which those are. */
#include <errno.h>

#include "pkg/hypernode/plan-internal.h"

static bool is_dying(const struct weft_pobj *o)
{
    return o->exists && o->ours && (o->tgt == NULL || o->replaced);
}

static bool is_survivor(const struct weft_pobj *o)
{
    return o->exists && o->ours && o->tgt != NULL && !o->replaced && !o->fixed;
}

/* Can nobody list the HyperNode for now? */
static bool is_barred(const struct weft_pobj *o)
{
    return !o->is_node && (o->replaced || o->contested || (!o->exists && o->tgt != NULL));
}

/* Is the member a reason to write its holder in this phase? */
static bool must_leave(const struct weft_pwork *w, const struct weft_pobj *holder, size_t member)
{
    const struct weft_pobj *m = &w->objs[member];
    if (is_barred(m)) {
        return true;
    }
    if (weft_pids_has(&holder->want, member)) {
        return false;
    }
    return m->owner != WEFT_MODEL_NO_ID || (!m->is_node && (!m->exists || is_dying(m)));
}

static bool has_leaving(const struct weft_pwork *w, const struct weft_pobj *o)
{
    for (size_t i = 0; i < o->now.n; i++) {
        if (must_leave(w, o, o->now.v[i])) {
            return true;
        }
    }
    return false;
}

/* May an object list it that does not yet? */
static bool is_free(const struct weft_pobj *m)
{
    return m->holders == 0 && !is_barred(m) && (m->is_node || m->exists);
}

/* What the object lists after its release: what stays, and of what it wants what nobody has. If
 * that is nothing, the Nodes that go nowhere (deleted ones) stay until its claim: better than to
 * delete the object, and its place in a parent, only to create it again. */
static int after_release(const struct weft_pwork *w, const struct weft_pobj *o,
                         struct weft_ids *ret_members)
{
    int rc = 0;
    for (size_t i = 0; i < o->want.n && rc == 0; i++) {
        const size_t id = o->want.v[i];
        const struct weft_pobj *m = &w->objs[id];
        const bool take = weft_pids_has(&o->now, id) ? !is_barred(m) : is_free(m);
        rc = take ? weft_ids_add(ret_members, id) : 0;
    }
    for (size_t i = 0, n = ret_members->n; n == 0 && i < o->now.n && rc == 0; i++) {
        const size_t id = o->now.v[i];
        rc = w->objs[id].is_node && !must_leave(w, o, id) ? weft_ids_add(ret_members, id) : 0;
    }
    return rc;
}

/* A replaced object is deleted with its members still on it. A child that others list too would be
 * torn from them by that, so they must let go of it first. */
static void mark_replaced(struct weft_pwork *w, size_t id)
{
    struct weft_pobj *o = &w->objs[id];
    o->replaced = true;
    for (size_t i = 0; i < o->now.n; i++) {
        struct weft_pobj *m = &w->objs[o->now.v[i]];
        m->contested = m->contested || (!m->is_node && m->holders > 1);
    }
}

/* The object would be empty after its release. It is replaced, unless a foreign object lists it:
 * such an object first keeps children that are fought over, and if that is not enough it stays as
 * it is, and who wants of its members goes without. true: its release may be tried again. */
static bool resolve_stuck(struct weft_pwork *w, size_t id)
{
    struct weft_pobj *o = &w->objs[id];
    if (!o->pinned) {
        mark_replaced(w, id);
        return false;
    }
    bool again = false;
    for (size_t i = 0; i < o->now.n; i++) {
        struct weft_pobj *m = &w->objs[o->now.v[i]];
        again = again || m->contested;
        m->contested = false;
    }
    o->fixed = !again;
    return again;
}

/* Objects that go for good let go of children that others list too (volcano-live.md 0.5: resolve a
 * double claim by an update, then delete). */
static int release_dying(struct weft_pwork *w, size_t id)
{
    struct weft_pobj *o = &w->objs[id];
    weft_auto(weft_ids_done) struct weft_ids rest = {0};
    for (size_t i = 0; i < o->now.n; i++) {
        const struct weft_pobj *m = &w->objs[o->now.v[i]];
        if ((m->is_node || m->holders < 2) && weft_ids_add(&rest, o->now.v[i]) < 0) {
            return -ENOMEM;
        }
    }
    if (rest.n == o->now.n) {
        return 0;
    }
    if (rest.n > 0 || o->odd) {
        return weft_pwork_emit(w, WEFT_STEP_RELEASE, id, &rest);
    }
    for (size_t i = 0; i < o->now.n; i++) {
        w->objs[o->now.v[i]].contested = true;
    }
    return 0;
}

/* One object, if it would keep something. 1: done. */
static int release_one(struct weft_pwork *w, size_t id, bool write)
{
    weft_auto(weft_ids_done) struct weft_ids members = {0};
    int rc = after_release(w, &w->objs[id], &members);
    if (rc < 0 || (members.n == 0 && !w->objs[id].odd)) {
        return rc;
    }
    if (write) {
        rc = weft_pwork_emit(w, WEFT_STEP_RELEASE, id, &members);
    } else {
        weft_pwork_set(w, id, &members);
    }
    return rc < 0 ? rc : 1;
}

/* Does the object want what another one has yet to let go of? Then it better waits: what it takes
 * in with its release needs no claim, and who was killed in between makes no write more than who
 * was not. */
static bool may_gain(const struct weft_pwork *w, const struct weft_pobj *o)
{
    for (size_t i = 0; i < o->want.n; i++) {
        const struct weft_pobj *m = &w->objs[o->want.v[i]];
        if (m->holders > 0 && !is_barred(m) && !weft_pids_has(&o->now, o->want.v[i])) {
            return true;
        }
    }
    return false;
}

/* One round: those that may gain by waiting wait, but for so many of them. 1: some went. */
static int release_round(struct weft_pwork *w, struct weft_ids *pending, bool write, size_t hurried)
{
    size_t left = 0;
    const size_t before = pending->n;
    for (size_t i = 0; i < before; i++) {
        const size_t id = pending->v[i];
        const bool gains = may_gain(w, &w->objs[id]);
        const int rc = gains && hurried == 0 ? 0 : release_one(w, id, write);
        if (rc < 0) {
            return rc;
        }
        hurried -= gains && rc > 0;
        if (rc == 0) {
            pending->v[left++] = id;
        }
    }
    pending->n = left;
    return left < before;
}

/* Goes round the pending objects until none can be done any more: one that lets go may free what
 * keeps another from being empty. Where all wait for each other some go first; not one at a time,
 * as there may be thousands. */
static int release_rounds(struct weft_pwork *w, struct weft_ids *pending, bool write)
{
    int went = 1;
    while (went > 0 && pending->n > 0) {
        went = release_round(w, pending, write, 0);
        went = went == 0 ? release_round(w, pending, write, pending->n / 16 + 1) : went;
    }
    return went < 0 ? went : 0;
}

/* The survivors among ids[from..to) that have something to let go. */
static int find_pending(const struct weft_pwork *w, size_t from, size_t to,
                        struct weft_ids *ret_pending)
{
    int rc = 0;
    for (size_t i = from; i < to && rc == 0; i++) {
        const struct weft_pobj *o = &w->objs[w->top_down.v[i]];
        if (is_survivor(o) && has_leaving(w, o)) {
            rc = weft_ids_add(ret_pending, w->top_down.v[i]);
        }
    }
    return rc;
}

/* Bottom up and without writing: marks what must be replaced. */
static int simulate(struct weft_pwork *w)
{
    size_t to = w->top_down.n;
    while (to > 0) {
        size_t from = to - 1;
        while (from > 0 &&
               w->objs[w->top_down.v[from - 1]].tier == w->objs[w->top_down.v[to - 1]].tier) {
            from--;
        }
        weft_auto(weft_ids_done) struct weft_ids pending = {0};
        int rc = find_pending(w, from, to, &pending);
        rc = rc == 0 ? release_rounds(w, &pending, false) : rc;
        while (rc == 0 && pending.n > 0) {
            const size_t id = pending.v[0];
            if (!resolve_stuck(w, id)) {
                weft_ids_remove(&pending, id);
            }
            rc = release_rounds(w, &pending, false);
        }
        if (rc < 0) {
            return rc;
        }
        to = from;
    }
    return weft_pwork_restore(w);
}

/* Top down, written. Where hand-made double claims make the play-through differ, what is stuck is
 * replaced after all. */
static int write_releases(struct weft_pwork *w)
{
    for (;;) {
        const size_t before = w->plan->step_count;
        size_t stuck = WEFT_MODEL_NO_ID;
        for (size_t from = 0, to; from < w->top_down.n; from = to) {
            to = from + 1;
            while (to < w->top_down.n &&
                   w->objs[w->top_down.v[to]].tier == w->objs[w->top_down.v[from]].tier) {
                to++;
            }
            weft_auto(weft_ids_done) struct weft_ids pending = {0};
            int rc = find_pending(w, from, to, &pending);
            rc = rc == 0 ? release_rounds(w, &pending, true) : rc;
            if (rc < 0) {
                return rc;
            }
            stuck = pending.n > 0 && stuck == WEFT_MODEL_NO_ID ? pending.v[0] : stuck;
        }
        if (w->plan->step_count == before) {
            if (stuck == WEFT_MODEL_NO_ID) {
                return 0;
            }
            (void)resolve_stuck(w, stuck);
        }
    }
}

int weft_pwork_release(struct weft_pwork *w, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < w->top_down.n && rc == 0; i++) {
        const size_t id = w->top_down.v[i];
        const struct weft_pobj *o = &w->objs[id];
        if (o->exists && o->ours && o->tgt == NULL) {
            rc = release_dying(w, id);
        } else if (is_survivor(o) && o->tier != o->tgt->tier) {
            mark_replaced(w, id);
        }
    }
    rc = rc == 0 ? weft_pwork_save(w) : rc;
    rc = rc == 0 ? simulate(w) : rc;
    rc = rc == 0 ? write_releases(w) : rc;
    return rc < 0 ? weft_err_nomem(err) : 0;
}
