/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a message of the kernel about a device: what matters has a subsystem. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/uevents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char key[] = "SUBSYSTEM=";
    const char *bytes = (const char *)data;
    if (weft_uevent_matters(bytes, size) && memmem(bytes, size, key, sizeof(key) - 1) == NULL) {
        abort();
    }
    return 0;
}
