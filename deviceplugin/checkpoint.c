/* SPDX-License-Identifier: Apache-2.0 */
/* {"Data": {"RegisteredDevices": {"nvidia.com/gpu": ["GPU-1", …]}, …}, …} (kubelet,
 * pkg/kubelet/cm/devicemanager/checkpoint; its ids are those of healthy devices). */
#include "deviceplugin/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/json/json.h"

int weft_checkpoint_device(const char *text, size_t len, const char *resource, char *id,
                           size_t size, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    id[0] = '\0';
    const int rc = weft_json_parse(text, len, WEFT_CHECKPOINT_FILE, &root, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_json *devices =
        weft_json_get(weft_json_get(root, "Data"), "RegisteredDevices");
    if (devices == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_JSON, "%s has no RegisteredDevices",
                            WEFT_CHECKPOINT_FILE);
    }
    const struct weft_json *ids = weft_json_get(devices, resource);
    const char *first = weft_json_count(ids) > 0 ? weft_json_string(weft_json_at(ids, 0)) : NULL;
    if (first != NULL && strlen(first) < size) {
        (void)snprintf(id, size, "%s", first);
    }
    return 0;
}
