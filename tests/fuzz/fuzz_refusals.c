/* SPDX-License-Identifier: Apache-2.0 */
/* Any ConfigMap as the controller's status and as accepted changes, and any text as the
 * configuration of Volcano's controller. Whatever is read of them has hashes that are hashes,
 * within the caps. */
#include <stdlib.h>
#include <string.h>

#include "pkg/apply/refusal.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/adopt.h"
#include "pkg/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_hash(const char *hash, bool may_lack)
{
    check((may_lack && hash[0] == '\0') || weft_refusal_is_hash(hash));
}

static void read_map(const struct weft_json *map)
{
    struct weft_refusals *refusals = weft_calloc(1, sizeof(*refusals));
    struct weft_acceptance accepted[WEFT_ACCEPTANCES_MAX];
    check(refusals != NULL);
    weft_refusals_read(map, refusals);
    check(refusals->count <= WEFT_REFUSALS_MAX);
    for (size_t i = 0; i < refusals->count; i++) {
        const struct weft_refusal *r = &refusals->items[i];
        check_hash(r->hash, false);
        check_hash(r->target, true);
        check(memchr(r->text, '\0', sizeof(r->text)) != NULL);
        check(weft_refusal_kind_name(r->kind)[0] != '\0');
    }
    const size_t count = weft_accepted_read(map, INT64_C(1767312000) * 1000000000, accepted);
    check(count <= WEFT_ACCEPTANCES_MAX);
    for (size_t i = 0; i < count; i++) {
        check_hash(accepted[i].hash, false);
        check_hash(accepted[i].target, true);
    }
    weft_free(refusals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_autofree char *text = weft_strndup((const char *)data, size);
    weft_auto(weft_json_free) struct weft_json *map = NULL;
    struct weft_error err = {0};
    check(text != NULL);
    if (weft_json_parse(text, strlen(text), "map", &map, NULL) == 0) {
        read_map(map);
    }
    const int on = weft_adopt_source_is_on(text, strlen(text), "conf", &err);
    check(on == 0 || on == 1 || err.message[0] != '\0');
    return 0;
}
