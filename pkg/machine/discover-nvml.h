/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA backend. */
#ifndef WEFT_MACHINE_DISCOVER_NVML_H
#define WEFT_MACHINE_DISCOVER_NVML_H

#include "pkg/machine/backend.h"

extern const struct weft_backend weft_backend_nvml;

#endif
