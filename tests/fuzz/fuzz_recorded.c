/* SPDX-License-Identifier: Apache-2.0 */
/* Any recording, through what recognises its format; see machine_sound.h for what must hold. */
#include "tests/fuzz/machine_sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    machine_sound(weft_machine_read, data, size);
    return 0;
}
