/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the beginning of a source's file: one kind, or a message. */
#include <stdlib.h>
#include <string.h>

#include "pkg/source/guess.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum weft_source_kind kind = WEFT_SOURCE_COUNT;
    struct weft_error err = {0};
    const int rc = weft_source_guess((const char *)data, size, "file", &kind, &err);
    if (rc == 0 ? kind >= WEFT_SOURCE_COUNT || err.message[0] != '\0'
                : kind != WEFT_SOURCE_COUNT || err.message[0] == '\0') {
        abort();
    }
    /* what is before a text on a line of its own decides nothing about JSON */
    char blanks[64] = "\n  ";
    if (size < sizeof(blanks) - 4 && size > 0 && data[0] == '{') {
        enum weft_source_kind again = WEFT_SOURCE_COUNT;
        memcpy(blanks + 3, data, size);
        if (weft_source_guess(blanks, size + 3, "file", &again, NULL) != rc || again != kind) {
            abort();
        }
    }
    return 0;
}
