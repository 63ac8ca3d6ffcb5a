/* SPDX-License-Identifier: Apache-2.0 */
/* Is a GPU a virtual one, and of which host's driver? NVIDIA's vGPU manager says it to the guest in
 * a vendor-specific capability of the PCI configuration space, as NVIDIA's GPU feature discovery
 * reads it. Pure. */
#ifndef WEFT_DEVICEPLUGIN_VGPU_H
#define WEFT_DEVICEPLUGIN_VGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_VGPU_TEXT_MAX = 11, WEFT_VGPU_CONFIG_SIZE = 256 };

struct weft_vgpu {
    bool present;
    char version[WEFT_VGPU_TEXT_MAX]; /* of the host's driver: "460.16"; "" unknown */
    char branch[WEFT_VGPU_TEXT_MAX];  /* "r460_00" */
};

/* config is what sysfs gives: 256 bytes or more, or 64 for whoever is not root. false (and
 * *ret_vgpu untouched): that is too little to tell. */
bool weft_vgpu_parse(const uint8_t *config, size_t len, struct weft_vgpu *ret_vgpu);

#endif
