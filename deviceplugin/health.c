/* SPDX-License-Identifier: Apache-2.0 */
/* The states of one device. Away from the kubelet at once for what is certain, after a while for
 * what is not; back only after looks over some time that all found it in order. */
#include "deviceplugin/health.h"

bool weft_health_advertised(enum weft_health_state state)
{
    return state == WEFT_HEALTH_HEALTHY || state == WEFT_HEALTH_SUSPECT;
}

const char *weft_health_state_name(enum weft_health_state state)
{
    switch (state) {
    case WEFT_HEALTH_HEALTHY:
        return "healthy";
    case WEFT_HEALTH_SUSPECT:
        return "suspect";
    case WEFT_HEALTH_UNHEALTHY:
        return "unhealthy";
    case WEFT_HEALTH_RECOVERING:
        return "recovering";
    case WEFT_HEALTH_STATE_COUNT:
        break;
    }
    return "unknown";
}

static bool enter(struct weft_health_unit *unit, enum weft_health_state state, int64_t now_ns)
{
    const bool moved = unit->state != state;
    if (moved) {
        unit->state = state;
        unit->since_ns = now_ns;
    }
    return moved;
}

/* Out of what the kubelet may give away. */
static bool fall(const struct weft_health_settings *s, struct weft_health_unit *unit,
                 int64_t now_ns)
{
    unit->falls_ns[unit->fall_count++ % WEFT_HEALTH_FALLS_MAX] = now_ns;
    unsigned recent = 0;
    for (unsigned i = 0; i < WEFT_HEALTH_FALLS_MAX && i < unit->fall_count; i++) {
        recent += now_ns - unit->falls_ns[i] < s->flap_window_ns ? 1 : 0;
    }
    unit->damped = s->flap_count > 0 && recent >= s->flap_count;
    return enter(unit, WEFT_HEALTH_UNHEALTHY, now_ns);
}

static bool doubt(const struct weft_health_settings *s, struct weft_health_unit *unit,
                  int64_t now_ns)
{
    switch (unit->state) {
    case WEFT_HEALTH_HEALTHY:
        (void)enter(unit, WEFT_HEALTH_SUSPECT, now_ns);
        return true;
    case WEFT_HEALTH_SUSPECT:
        return now_ns - unit->since_ns >= s->suspect_ns && fall(s, unit, now_ns);
    case WEFT_HEALTH_RECOVERING:
        return enter(unit, WEFT_HEALTH_UNHEALTHY, now_ns);
    case WEFT_HEALTH_UNHEALTHY:
    case WEFT_HEALTH_STATE_COUNT:
        break;
    }
    return false;
}

static bool clean(const struct weft_health_settings *s, struct weft_health_unit *unit,
                  int64_t now_ns)
{
    const int64_t dwell = unit->damped ? s->flap_recover_ns : s->recover_ns;
    switch (unit->state) {
    case WEFT_HEALTH_SUSPECT:
        return enter(unit, WEFT_HEALTH_HEALTHY, now_ns);
    case WEFT_HEALTH_UNHEALTHY:
        return enter(unit, dwell > 0 ? WEFT_HEALTH_RECOVERING : WEFT_HEALTH_HEALTHY, now_ns);
    case WEFT_HEALTH_RECOVERING:
        return now_ns - unit->since_ns >= dwell && enter(unit, WEFT_HEALTH_HEALTHY, now_ns);
    case WEFT_HEALTH_HEALTHY:
    case WEFT_HEALTH_STATE_COUNT:
        break;
    }
    return false;
}

bool weft_health_step(const struct weft_health_settings *settings, struct weft_health_unit *unit,
                      enum weft_health_sign sign, int64_t now_ns)
{
    switch (sign) {
    case WEFT_SIGN_CLEAN:
        return clean(settings, unit, now_ns);
    case WEFT_SIGN_DOUBT:
        return doubt(settings, unit, now_ns);
    case WEFT_SIGN_FAULT:
        /* one that comes while it recovers was not seen by anybody outside: no fall */
        return weft_health_advertised(unit->state) ? fall(settings, unit, now_ns)
                                                   : enter(unit, WEFT_HEALTH_UNHEALTHY, now_ns);
    case WEFT_SIGN_COUNT:
        break;
    }
    return false;
}
