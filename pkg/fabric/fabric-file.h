/* SPDX-License-Identifier: Apache-2.0 */
/* weft's own fabric file (weft.dev/v1alpha1, kind FabricFile): groups, adapters' GUIDs by node,
 * names of foreign hosts, an epoch. Strict: an unknown field is an error with file and line. Pure.
 */
#ifndef WEFT_FABRIC_FABRIC_FILE_H
#define WEFT_FABRIC_FABRIC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_declared;

enum {
    WEFT_FABRIC_FILE_MAX = 32 << 20,
    WEFT_FABRIC_FILE_GUIDS_MAX = 1 << 22,
    WEFT_FABRIC_FILE_EPOCH_MAX = 128
};

struct weft_guid_name {
    uint64_t guid; /* node, system image or port GUID */
    char *node;
};

struct weft_host_name {
    char *host; /* as a fabric or another source names it */
    char *node;
};

struct weft_fabric_file {
    struct weft_declared *groups; /* NULL if the file has none */
    struct weft_guid_name *guids; /* ascending, unique */
    size_t guid_count;
    struct weft_host_name *hosts; /* by host (strcmp), unique */
    size_t host_count;
    uint64_t *compute; /* GUIDs of adapters on the compute network, as written */
    size_t compute_count;
    uint64_t *other; /* of adapters that are for something else */
    size_t other_count;
    char *epoch; /* what an optical switch's controller counts up; "" if the file has none */
};

void weft_fabric_file_free(struct weft_fabric_file *file);
WEFT_DEFINE_AUTO(struct weft_fabric_file, weft_fabric_file_free)

/* Reads YAML (or JSON):
 *
 *   apiVersion: weft.dev/v1alpha1
 *   kind: FabricFile
 *   epoch: "17"                  # optional
 *   levels: [rack, row]          # tier names, closest first; needed with groups
 *   groups:                      # nested (farthest outside) or flat, each at its level
 *   - name: row-a
 *     level: row
 *     groups:
 *     - {name: r1, level: rack, nodes: "n[01-16]"}
 *   guids:                       # optional: adapters of nodes
 *   - {node: n01, guids: ["0x0c42a103001b7ab6", "0x0c42a103001b7ab7"]}
 *   roles:                       # optional: what adapters are for, such as a partition's members
 *     compute: ["0x0c42a103001b7ab6"]
 *     other: ["0x0c42a103001b7ab7"]
 *   hosts:                       # optional: names that other sources use
 *   - {host: gpu-n01.example.com, node: n01}
 *
 * A node is named once a level, by itself or through the groups around its own; a group's level is
 * farther than those of groups within it; a group's name is unique in its level under its parent.
 * Node names are matched as host names (WEFT_NAMES_HOSTS). source is the file's name for errors.
 * The caller owns *ret_file. Errors: -EINVAL with file:line: field, -EFBIG, -ENOMEM. */
int weft_parse_fabric_file(const char *text, size_t len, const char *source,
                           struct weft_fabric_file **ret_file, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A GUID map alone: opensm's node-name-map (`0x<guid> "name"`), or `name: 0x<guid>` a line, several
 * lines a name. Gives a file with guids only. Errors as above. */
int weft_parse_guid_map(const char *text, size_t len, const char *source,
                        struct weft_fabric_file **ret_file, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
