/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `nvidia-smi topo -p2p` (which GPUs may reach one another's memory), alone or beside
 * the matrix of `topo -m` in one recording. */
#ifndef WEFT_MACHINE_SMI_P2P_INTERNAL_H
#define WEFT_MACHINE_SMI_P2P_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"

enum { WEFT_SMI_P2P_MAX = 8 }; /* -p2p has r, w, n, a, p and c */

/* A recording taken apart; each text is whole lines with all else blanked, so that line numbers
 * stay. */
struct weft_smi_parts {
    char *matrix; /* NULL: there is no topo -m in it */
    char *p2p[WEFT_SMI_P2P_MAX];
    size_t p2p_count; /* 0: matrix is the whole text */
    size_t len;       /* of each */
};

/* text is cleaned (weft_topo_clean). Errors: -EINVAL, -ENOMEM. */
int weft_smi_split(const char *text, size_t len, const char *name, struct weft_smi_parts *ret_parts,
                   struct weft_error *err) __attribute__((warn_unused_result));
void weft_smi_parts_done(struct weft_smi_parts *parts);
WEFT_DEFINE_AUTO_VALUE(struct weft_smi_parts, weft_smi_parts_done)

/* Sets B to 0 where a table says that two GPUs may not reach one another. */
int weft_smi_apply_p2p(const struct weft_smi_parts *parts, struct weft_machine *machine,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* The devices of such a table alone: links and distances unknown, with a warning. */
int weft_smi_p2p_alone(const struct weft_smi_parts *parts, const char *name,
                       struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
