/* SPDX-License-Identifier: Apache-2.0 */
/* Declared sets as text, for comparing: tests write what they expect as people read it. */
#ifndef WEFT_TESTS_UNIT_DECLARED_TEXT_H
#define WEFT_TESTS_UNIT_DECLARED_TEXT_H

struct weft_declared;

/* "tier tier: node=value/value node=-/value", closest level first; "-" for no value. Owned. */
char *weft_declared_text(const struct weft_declared *declared);
/* Checks the text, frees the set; NULL with expected NULL is right. */
void weft_declared_check(struct weft_declared *declared, const char *expected);

#endif
