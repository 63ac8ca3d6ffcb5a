/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/tree: all that the controller knows, as JSON. It is written in parts while it is read,
 * from what is there at that moment, so that neither its size nor the reader's pace matters to the
 * loop or to memory; "consistent" at its end says whether anything changed meanwhile. Loop thread.
 */
#ifndef WEFT_CONTROLLER_DEBUG_TREE_H
#define WEFT_CONTROLLER_DEBUG_TREE_H

struct weft_controller;
struct weft_http_answer;

/* Makes it the answer. c must outlive the server. */
void weft_debug_tree(struct weft_controller *c, struct weft_http_answer *answer);

#endif
