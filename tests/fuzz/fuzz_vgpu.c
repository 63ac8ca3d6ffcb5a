/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a PCI configuration space: what is told of a virtual GPU is text that ends. */
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/vgpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weft_vgpu vgpu = {0};
    const bool known = weft_vgpu_parse(data, size, &vgpu);
    if (known != (size >= WEFT_VGPU_CONFIG_SIZE) ||
        memchr(vgpu.version, '\0', sizeof(vgpu.version)) == NULL ||
        memchr(vgpu.branch, '\0', sizeof(vgpu.branch)) == NULL ||
        (!vgpu.present && (vgpu.version[0] != '\0' || vgpu.branch[0] != '\0'))) {
        abort();
    }
    return 0;
}
