/* SPDX-License-Identifier: Apache-2.0 */
/* The slow reading. */
#include "tests/unit/merge_oracle.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

/* The nodes of one group, by number. */
struct set {
    int count;
    int node[MERGE_ORACLE_NODES];
};

/* A declared group is its value and all values above it. */
static void first_places(struct merge_oracle *o)
{
    for (int l = 0; l < o->levels; l++) {
        for (int n = 0; n < o->nodes; n++) {
            o->place[l][n][0] = '\0';
            int s = 0;
            while (s < o->sources && o->value[s][l][n] < 0) {
                s++;
            }
            if (s == o->sources) {
                continue;
            }
            int at = snprintf(o->place[l][n], MERGE_ORACLE_TEXT, "%d", s);
            for (int u = l; u < o->levels; u++) {
                at += snprintf(o->place[l][n] + at, (size_t)(MERGE_ORACLE_TEXT - at), ",%d",
                               o->value[s][u][n]);
            }
        }
    }
}

static bool known(const struct merge_oracle *o, int l, int n)
{
    return o->place[l][n][0] != '\0';
}

static bool same(const struct merge_oracle *o, int l, int a, int b)
{
    return strcmp(o->place[l][a], o->place[l][b]) == 0;
}

static bool differ(const struct merge_oracle *o, int l, int a, int b)
{
    return known(o, l, a) && known(o, l, b) && !same(o, l, a, b);
}

/* All that a has in the given levels, b has too. */
static bool within(const struct merge_oracle *o, const bool *levels, int a, int b)
{
    for (int l = 0; l < o->levels; l++) {
        if (levels[l] && known(o, l, a) && !same(o, l, a, b)) {
            return false;
        }
    }
    return true;
}

static bool alike(const struct merge_oracle *o, const bool *levels, int a, int b)
{
    return within(o, levels, a, b) && within(o, levels, b, a);
}

/* A domain whose nodes are apart leaves all levels up to the last in which they are. */
static void lift(struct merge_oracle *o, int level, const struct set *set)
{
    int last = -1;
    for (int l = level + 1; l < o->levels; l++) {
        for (int i = 0; i < set->count; i++) {
            for (int j = 0; j < i; j++) {
                last = differ(o, l, set->node[i], set->node[j]) ? l : last;
            }
        }
    }
    for (int l = level + 1; l <= last; l++) {
        for (int i = 0; i < set->count; i++) {
            o->place[l][set->node[i]][0] = '\0';
        }
    }
    o->crossings += last >= 0;
}

/* The node whose places in the binding levels a's part goes by: one that has all that a has, and
 * beyond which nobody has more; a itself if there are two such that differ. */
static int bound_by(const struct merge_oracle *o, const bool *binding, const struct set *set, int a)
{
    int found = -1;
    for (int i = 0; i < set->count; i++) {
        const int b = set->node[i];
        bool most = within(o, binding, a, b);
        for (int j = 0; j < set->count; j++) {
            const int c = set->node[j];
            most = most && !(within(o, binding, b, c) && !within(o, binding, c, b));
        }
        if (most && found >= 0 && !alike(o, binding, found, b)) {
            return a;
        }
        found = most && found < 0 ? b : found;
    }
    return found;
}

/* Whose places above all of the part take over: the binding ones in full, and agreed with by most.
 */
static int leader_of(const struct merge_oracle *o, const bool *binding, const bool *above,
                     const struct set *part, int bound)
{
    int leader = -1;
    int most = -1;
    for (int i = 0; i < part->count; i++) {
        const int a = part->node[i];
        int votes = 0;
        for (int j = 0; j < part->count; j++) {
            votes += within(o, above, part->node[j], a);
        }
        if (alike(o, binding, a, bound) && votes > most) {
            most = votes;
            leader = a;
        }
    }
    return leader;
}

static void settle_part(struct merge_oracle *o, int level, const bool *binding,
                        const struct set *part, int bound, bool cut)
{
    bool above[MERGE_ORACLE_LEVELS] = {false};
    for (int l = level + 1; l < o->levels; l++) {
        above[l] = true;
    }
    char name[MERGE_ORACLE_TEXT] = "";
    const int leader = leader_of(o, binding, above, part, bound);
    for (int l = level + 1; cut && l < o->levels; l++) {
        if (binding[l] && known(o, l, bound)) {
            (void)snprintf(name, sizeof(name), "@%s", o->place[l][bound]);
            break;
        }
    }
    for (int i = 0; i < part->count; i++) {
        const int n = part->node[i];
        const size_t at = strlen(o->place[level][n]);
        (void)snprintf(o->place[level][n] + at, MERGE_ORACLE_TEXT - at, "%s", name);
        for (int l = level + 1; l < o->levels && n != leader; l++) {
            o->crossings += differ(o, l, n, leader);
            memcpy(o->place[l][n], o->place[l][leader], MERGE_ORACLE_TEXT);
        }
    }
}

/* Fills the levels whose groups cut this one. */
static void find_binding(const struct merge_oracle *o, int level, const struct set *set,
                         bool *binding)
{
    const char own = o->place[level][set->node[0]][0];
    for (int l = level + 1; l < o->levels; l++) {
        binding[l] = level == o->domain && o->on_cross == 's';
        for (int i = 0; level != o->domain && i < set->count; i++) {
            /* the first digit is the source */
            binding[l] =
                binding[l] || (known(o, l, set->node[i]) && o->place[l][set->node[i]][0] < own);
        }
    }
}

static void settle_group(struct merge_oracle *o, int level, const struct set *set)
{
    bool binding[MERGE_ORACLE_LEVELS] = {false};
    int bound[MERGE_ORACLE_NODES] = {0};
    bool cut = false;
    if (level == o->domain && o->on_cross == 'l') {
        lift(o, level, set);
    }
    find_binding(o, level, set, binding);
    for (int i = 0; i < set->count; i++) {
        bound[i] = bound_by(o, binding, set, set->node[i]);
        cut = cut || !alike(o, binding, bound[i], bound[0]);
    }
    o->crossings += cut;
    bool done[MERGE_ORACLE_NODES] = {false};
    struct set parts[MERGE_ORACLE_NODES] = {0};
    for (int i = 0; i < set->count; i++) {
        for (int j = i; j < set->count && !done[i]; j++) {
            if (alike(o, binding, bound[i], bound[j])) {
                parts[i].node[parts[i].count++] = set->node[j];
                done[j] = j > i;
            }
        }
    }
    /* all is known before anybody is moved */
    for (int i = 0; i < set->count; i++) {
        if (parts[i].count > 0) {
            settle_part(o, level, binding, &parts[i], bound[i], cut);
        }
    }
}

static void settle_level(struct merge_oracle *o, int level)
{
    struct set sets[MERGE_ORACLE_NODES] = {0};
    bool done[MERGE_ORACLE_NODES] = {false};
    for (int a = 0; a < o->nodes; a++) {
        for (int b = a; b < o->nodes && known(o, level, a) && !done[a]; b++) {
            if (same(o, level, a, b)) {
                sets[a].node[sets[a].count++] = b;
                done[b] = b > a;
            }
        }
    }
    for (int a = 0; a < o->nodes; a++) {
        if (sets[a].count > 0) {
            settle_group(o, level, &sets[a]);
        }
    }
}

void merge_oracle_run(struct merge_oracle *o)
{
    o->crossings = 0;
    first_places(o);
    for (int l = o->levels - 2; l >= 0; l--) {
        settle_level(o, l);
    }
}
