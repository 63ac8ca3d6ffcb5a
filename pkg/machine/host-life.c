/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a PCI function is alive, by what sysfs reads from it. */
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host.h"

/* The width in the Link Status register of a function that does not answer: all ones of a field of
 * six bits (PCIe base specification, 7.5.3.8). No link is 63 lanes wide. */
#define WIDTH_OF_NOBODY 63

enum { PATH_TEXT_MAX = 96 };

static int read_attribute(const struct weft_host *host, const char *address, const char *attribute,
                          char *text, size_t size)
{
    char path[PATH_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, attribute);
    return weft_host_read(host, path, text, size);
}

enum weft_pci_sign weft_host_pci_sign(const struct weft_host *host, const struct weft_bdf *bdf)
{
    char address[WEFT_BDF_TEXT_MAX], path[PATH_TEXT_MAX], text[32];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", weft_bdf_format(bdf, address));
    if (!bdf->known || !weft_host_exists(host, path)) {
        return WEFT_PCI_ABSENT;
    }
    /* one that sleeps deeply reads all ones too: Documentation/ABI/testing/sysfs-bus-pci */
    if (read_attribute(host, address, "power_state", text, sizeof(text)) > 0 &&
        strcmp(text, "D3cold") == 0) {
        return WEFT_PCI_THERE;
    }
    uint64_t width = 0;
    const bool dead = read_attribute(host, address, "current_link_width", text, sizeof(text)) > 0 &&
                      weft_parse_u64(weft_str(text), UINT8_MAX, &width) == 0 &&
                      width == WIDTH_OF_NOBODY;
    return dead ? WEFT_PCI_DEAD : WEFT_PCI_THERE;
}
