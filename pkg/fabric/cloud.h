/* SPDX-License-Identifier: Apache-2.0 */
/* Clouds' topology answers as declared groups. Written from the providers' documents and saved
 * answers; not yet run against a live account. Pure. */
#ifndef WEFT_FABRIC_CLOUD_H
#define WEFT_FABRIC_CLOUD_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_declared;

enum { WEFT_CLOUD_TEXT_MAX = 64 << 20 };

struct weft_cloud_options {
    const char *const *tiers; /* closest first; NULL: leaf, spine, core, super-core */
    size_t tier_count;
    const char *host; /* OCI: the node that an answer of the metadata service is about */
};

/* The JSON of `aws ec2 describe-instance-topology` (one page, or pages one after the other): nodes
 * are instance ids (WEFT_NAMES_INSTANCES), levels are NetworkNodes from the last (the closest) to
 * the first. A page with a NextToken whose successor is not there makes the result partial, as does
 * an instance without NetworkNodes. options may be NULL. The caller owns *ret_declared. Errors:
 * -EINVAL with file:line and field, -EFBIG, -ENOMEM. */
int weft_parse_aws_topology(const char *text, size_t len, const char *source,
                            const struct weft_cloud_options *options,
                            struct weft_declared **ret_declared, struct weft_error *err)
    __attribute__((warn_unused_result));

/* OCI: a host's own answer (metadata service: /opc/v2/host/rdmaTopologyData, or /opc/v2/host with
 * it inside) about the node options->host (WEFT_NAMES_HOSTS); or, without options->host, a list of
 * compute hosts (the answer of ListComputeHosts, also in `oci` form with "data" and hyphens) whose
 * nodes are instance OCIDs (WEFT_NAMES_INSTANCES). Levels: local block, network block, HPC island.
 * A host whose answer has none of them (a shape without RDMA) gives an empty, partial set, so that
 * it does not stop the others. Errors as above. */
int weft_parse_oci(const char *text, size_t len, const char *source,
                   const struct weft_cloud_options *options, struct weft_declared **ret_declared,
                   struct weft_error *err) __attribute__((warn_unused_result));

#endif
