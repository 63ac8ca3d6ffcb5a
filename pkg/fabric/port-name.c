/* SPDX-License-Identifier: Apache-2.0 */
/* What a port's name tells about the device it is on. Network operating systems and Linux name
 * ports in ways that do not meet: "eth0" is a host's, "Eth1/1" a switch's. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "pkg/fabric/cabling-internal.h"

struct prefix {
    const char *text;
    bool exact_case;
    enum weft_port_kind kind;
};

/* Before a digit ("-" and blanks between are passed over); the first that fits. Sources: systemd's
 * predictable names (systemd.net-naming-scheme), Cumulus, SONiC, EOS, NX-OS, Junos, IOS. */
static const struct prefix prefixes[] = {
    {"swp", true, WEFT_PORT_SWITCH},
    {"mgmt", false, WEFT_PORT_MANAGEMENT},
    {"management", false, WEFT_PORT_MANAGEMENT},
    {"fxp", true, WEFT_PORT_MANAGEMENT},
    {"em", true, WEFT_PORT_MANAGEMENT},
    {"me", true, WEFT_PORT_MANAGEMENT},
    {"Ma", true, WEFT_PORT_MANAGEMENT},
    {"Ethernet", true, WEFT_PORT_SWITCH},
    {"Eth", true, WEFT_PORT_SWITCH},
    {"Et", true, WEFT_PORT_SWITCH},
    {"et", true, WEFT_PORT_SWITCH},
    {"xe", true, WEFT_PORT_SWITCH},
    {"ge", true, WEFT_PORT_SWITCH},
    {"Port", false, WEFT_PORT_SWITCH},
    {"eth", true, WEFT_PORT_HOST},
    {"mlx", true, WEFT_PORT_HOST},
    {"mlx5_", true, WEFT_PORT_HOST},
    {"HCA", false, WEFT_PORT_HOST},
    {"bond", true, WEFT_PORT_HOST},
    {"pf", true, WEFT_PORT_HOST},
    {"p", true, WEFT_PORT_HOST},
    {"oob_net", true, WEFT_PORT_HOST},
    {"ib", true, WEFT_PORT_HOST},
    {"IB Port", false, WEFT_PORT_HOST},
};

/* Longer words of IOS and IOS-XR: "GigabitEthernet0/39", "Hu0/0/0/1". */
static const char *const ios[] = {
    "Gi", "Te", "Fo", "Hu", "Fa", "TwentyFiveGigE", "FourHundredGigE"};

static bool starts(const char *name, const struct prefix *prefix)
{
    const size_t len = strlen(prefix->text);
    const bool same = prefix->exact_case ? strncmp(name, prefix->text, len) == 0
                                         : strncasecmp(name, prefix->text, len) == 0;
    const char *rest = name + len;
    if (!same) {
        return false;
    }
    rest += strspn(rest, "- ");
    return isdigit((unsigned char)*rest);
}

/* "eno1", "ens841np0", "enp2s0f0", "ibp11s0f0", "ibs3": letters of systemd's scheme, then digits.
 */
static bool is_predictable(const char *name)
{
    return (strncmp(name, "en", 2) == 0 || strncmp(name, "ib", 2) == 0) &&
           strchr("opsxPbvc", name[2]) != NULL && name[2] != '\0' &&
           (isxdigit((unsigned char)name[3]) || name[3] == 'P');
}

enum weft_port_kind weft_port_kind(const char *name)
{
    if (is_predictable(name)) {
        return WEFT_PORT_HOST;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(prefixes); i++) {
        if (starts(name, &prefixes[i])) {
            return prefixes[i].kind;
        }
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ios); i++) {
        if (strncmp(name, ios[i], strlen(ios[i])) == 0 && strpbrk(name, "0123456789") != NULL) {
            return WEFT_PORT_SWITCH;
        }
    }
    const bool number = name[0] != '\0' && strspn(name, "0123456789/") == strlen(name);
    return number ? WEFT_PORT_SWITCH : WEFT_PORT_UNKNOWN;
}

unsigned weft_port_number(const char *name)
{
    const char *digits = name;
    while (isalpha((unsigned char)*digits) || *digits == ' ') {
        digits++;
    }
    uint64_t number = 0;
    return weft_parse_u64(weft_str(digits), UINT16_MAX, &number) == 0 ? (unsigned)number : 0;
}
