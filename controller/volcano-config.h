/* SPDX-License-Identifier: Apache-2.0 */
/* What is unwise for HyperNodes in Volcano's own configuration files, and which HyperNodes come
 * from Volcano's own discovery. Each thing is a finding that says what to change. Pure: text and
 * sets in, findings out; nothing is ever written. */
#ifndef WEFT_CONTROLLER_VOLCANO_CONFIG_H
#define WEFT_CONTROLLER_VOLCANO_CONFIG_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_findings;
struct weft_hypernode_set;
struct weft_json;

/* most bytes of a configuration that are looked at; a ConfigMap holds 1 MiB in all */
enum { WEFT_VOLCANO_CONFIG_MAX = 1 << 20 };

/* The scheduler's configuration: without the plugin network-topology-aware, or with it switched
 * off, no topology constraint is enforced, not even a hard one; without the GPU among its binpack
 * resources HyperNodes are filled up by CPU and memory alone. name is the subject of the findings
 * ("namespace/ConfigMap"). A text that weft cannot read is a finding too. Errors: -ENOMEM. */
int weft_volcano_judge_scheduler(const char *text, size_t len, const char *name,
                                 struct weft_findings *findings)
    __attribute__((warn_unused_result));

/* The controller's: discovery sources that are switched on there make HyperNodes of their own for
 * the same nodes. Errors: -ENOMEM. */
int weft_volcano_judge_controller(const char *text, size_t len, const char *name,
                                  struct weft_findings *findings)
    __attribute__((warn_unused_result));

/* HyperNodes that carry the label of one of Volcano's discoverers: one finding a source, with how
 * many there are and one of their names. Errors: -ENOMEM. */
int weft_volcano_judge_objects(const struct weft_hypernode_set *set, const char *instance,
                               struct weft_findings *findings) __attribute__((warn_unused_result));

/* An answer to GET /apis/topology.volcano.sh (metav1.APIGroup): a finding if the group is served,
 * but not in the version that weft writes. Errors: -ENOMEM. */
int weft_volcano_judge_versions(const struct weft_json *group, struct weft_findings *findings)
    __attribute__((warn_unused_result));

/* The text of a ConfigMap's configuration file: its first key that ends in ".conf"; NULL if it has
 * none. Borrowed. */
const char *weft_volcano_config_text(const struct weft_json *config_map);

#endif
