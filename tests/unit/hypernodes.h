/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of HyperNodes as short text, for the tests of the controller and of apply: one object a
 * line, "name tier member…", sorted by name. Members of tier 1 are Nodes, of others HyperNodes; a
 * name that begins with "!" is another owner's object. */
#ifndef WEFT_TESTS_UNIT_HYPERNODES_H
#define WEFT_TESTS_UNIT_HYPERNODES_H

#include "pkg/hypernode/hypernode.h"

/* Adds the objects of text to set, with instance "weft", tierName "t<tier>", identity "id-<name>".
 * Fails the test on bad text or without memory. */
void hypernodes_read(struct weft_hypernode_set *set, const char *text);
/* The set in that form; the caller frees it. Only exactMatch members are shown. */
char *hypernodes_text(const struct weft_hypernode_set *set);
/* Checks that set reads like text (lines in any order of members are not accepted). */
void hypernodes_check(const char *file, int line, const struct weft_hypernode_set *set,
                      const char *text);
#define CHECK_SET(set, text) hypernodes_check(__FILE__, __LINE__, (set), (text))

#endif
