/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a page of a program under test, as a probe does. */
#ifndef WEFT_TESTS_UNIT_HTTP_GET_H
#define WEFT_TESTS_UNIT_HTTP_GET_H

#include <stdint.h>

struct weft_buf;

/* The whole answer of 127.0.0.1:port, head and body, which page then holds; "" if there was none
 * within five seconds. */
const char *http_get(uint16_t port, const char *path, struct weft_buf *page);

#endif
