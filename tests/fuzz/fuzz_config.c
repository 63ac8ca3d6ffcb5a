/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a ControllerConfig: it is refused with a message, or it keeps its promises. */
#include <stdlib.h>

#include "pkg/source/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_config_free) struct weft_config *config = NULL;
    struct weft_error err = {0};
    if (weft_config_parse((const char *)data, size, "file", &config, &err) < 0) {
        if (err.message[0] == '\0' || config != NULL) {
            abort();
        }
        return 0;
    }
    if (config->tiers.count == 0 || config->source_count == 0 || config->node_selector == NULL ||
        config->debounce.max_ns < config->debounce.quiet_ns || config->brakes.lost_percent > 100) {
        abort();
    }
    return 0;
}
