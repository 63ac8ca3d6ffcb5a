/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of NCCL and RCCL topology files; see machine_sound.h for what must hold. */
#include "tests/fuzz/machine_sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    machine_sound(weft_machine_read_nccl_xml, data, size);
    return 0;
}
