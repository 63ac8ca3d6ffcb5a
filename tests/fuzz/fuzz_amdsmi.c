/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of amd-smi's and rocm-smi's topology; see machine_sound.h for what must hold. */
#include "tests/fuzz/machine_sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    machine_sound(weft_machine_read_amd_smi, data, size);
    return 0;
}
