/* SPDX-License-Identifier: Apache-2.0 */
/* PCI Local Bus Specification 3.0, 6.7: the list of capabilities, each an id, the place of the next
 * and, in a vendor's own one, its length. */
#include "deviceplugin/vgpu.h"

#include <string.h>

enum {
    STATUS = 0x06,
    STATUS_HAS_LIST = 0x10,
    LIST = 0x34,
    ID_VENDOR = 0x09,
    ID_BROKEN = 0xff,
    CAPABILITIES_MAX = 64, /* each has four bytes at least: more is a loop */
    /* the vendor's: "VF" after the length, then records of a kind, a length and content */
    SIGNATURE = 3,
    RECORDS = 5,
    RECORD_DRIVER = 0,
    FIELD = WEFT_VGPU_TEXT_MAX - 1
};

/* The place of the first vendor-specific capability; 0 for none. */
static size_t find_capability(const uint8_t *config)
{
    if ((config[STATUS] & STATUS_HAS_LIST) == 0) {
        return 0;
    }
    size_t at = config[LIST];
    for (int i = 0; i < CAPABILITIES_MAX && at != 0 && at + 2 < WEFT_VGPU_CONFIG_SIZE; i++) {
        if (config[at] == ID_VENDOR) {
            return at;
        }
        if (config[at] == ID_BROKEN) {
            break;
        }
        at = config[at + 1];
    }
    return 0;
}

static void copy_field(char *to, const uint8_t *from)
{
    memcpy(to, from, FIELD);
    to[FIELD] = '\0';
}

bool weft_vgpu_parse(const uint8_t *config, size_t len, struct weft_vgpu *ret_vgpu)
{
    if (len < WEFT_VGPU_CONFIG_SIZE) {
        return false;
    }
    struct weft_vgpu vgpu = {0};
    const size_t at = find_capability(config);
    const size_t end = at + (at != 0 ? config[at + 2] : 0);
    vgpu.present = at != 0 && end <= WEFT_VGPU_CONFIG_SIZE && end >= at + RECORDS &&
                   config[at + SIGNATURE] == 'V' && config[at + SIGNATURE + 1] == 'F';
    size_t record = at + RECORDS;
    while (vgpu.present && record + 2 <= end && config[record] != RECORD_DRIVER &&
           config[record + 1] != 0) {
        record += config[record + 1];
    }
    if (vgpu.present && record + 2 + FIELD + FIELD <= end && config[record] == RECORD_DRIVER) {
        copy_field(vgpu.version, config + record + 2);
        copy_field(vgpu.branch, config + record + 2 + FIELD);
    }
    *ret_vgpu = vgpu;
    return true;
}
