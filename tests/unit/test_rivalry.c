/* SPDX-License-Identifier: Apache-2.0 */
/* How long to keep away from another plugin, and whose socket is one. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "deviceplugin/folder.h"
#include "deviceplugin/rivalry.h"
#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

#define S WEFT_NS_PER_S

static void twice_within_a_minute_is_a_rival(void)
{
    struct weft_rivalry r = {0};
    CHECK_INT(weft_rivalry_lost(&r, 1000 * S), 0);
    CHECK_INT(weft_rivalry_lost(&r, 1059 * S), 30 * S);
    struct weft_rivalry slow = {0};
    CHECK_INT(weft_rivalry_lost(&slow, 1000 * S), 0);
    CHECK_INT(weft_rivalry_lost(&slow, 1060 * S), 0); /* a minute later is another story */
}

static void each_time_it_keeps_away_longer(void)
{
    static const int64_t want[] = {30, 60, 120, 240, 300, 300}; /* 480 and more: five minutes */
    struct weft_rivalry r = {0};
    int64_t now = 1000 * S;
    CHECK_INT(weft_rivalry_lost(&r, now), 0);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        now += 1 * S;
        const int64_t away = weft_rivalry_lost(&r, now);
        CHECK_INT(away, want[i] * S);
        now += away;
    }
}

static void peace_is_forgiven(void)
{
    struct weft_rivalry r = {0};
    CHECK_INT(weft_rivalry_lost(&r, 1000 * S), 0);
    CHECK_INT(weft_rivalry_lost(&r, 1010 * S), 30 * S); /* until 1040; the next would be 60 */
    CHECK_INT(weft_rivalry_lost(&r, 1150 * S), 0);      /* 110 s of peace: not 60 and a minute */
    CHECK_INT(weft_rivalry_lost(&r, 1151 * S), 60 * S); /* until 1211; the next would be 120 */
    CHECK_INT(weft_rivalry_lost(&r, 1400 * S), 0);      /* 189 s of peace: over 120 and a minute */
    CHECK_INT(weft_rivalry_lost(&r, 1401 * S), 30 * S);
}

static void waits_are_spread_downwards(void)
{
    uint64_t seed = 7;
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t wait = weft_spread(30 * S, &seed);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    CHECK_INT(least, 24 * S); /* a fifth less */
    CHECK_INT(most, 30 * S);
}

static void others_sockets_are_known_by_name(void)
{
    CHECK(weft_folder_is_rival("nvidia-gpu.sock", "nvidia.com/gpu"));
    CHECK(weft_folder_is_rival("nvidia-mig-1g.10gb.sock", "nvidia.com/mig-1g.10gb"));
    CHECK(weft_folder_is_rival("amd.com_gpu", "amd.com/gpu"));
    CHECK(weft_folder_is_rival("gpu.intel.com-i915.sock", "gpu.intel.com/i915"));
    CHECK(!weft_folder_is_rival("nvidia-gpu.sock", "nvidia.com/mig-1g.10gb"));
    CHECK(!weft_folder_is_rival("nvidia-gpu.sock", "amd.com/gpu"));
    CHECK(!weft_folder_is_rival("nvidia.com-gpu-7-1.sock", "nvidia.com/gpu")); /* ours */
    CHECK(!weft_folder_is_rival("kubelet.sock", "nvidia.com/gpu"));
}

static int listen_at(const char *dir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(fd, 8), 0);
    return fd;
}

static void only_the_living_count(void)
{
    char dir[256], name[WEFT_FOLDER_NAME_MAX], text[64], short_text[12];
    (void)snprintf(dir, sizeof(dir), "%s/rivals", weft_test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    weft_folder_rival(dir, "nvidia.com/gpu", name);
    CHECK_STR(name, "");
    int fd = listen_at(dir, "nvidia-gpu.sock");
    weft_autoclose int other = listen_at(dir, "rdma-shared.sock");
    weft_autoclose int own = listen_at(dir, "own.sock");
    weft_autoclose int kubelet = listen_at(dir, "kubelet.sock");
    CHECK(own >= 0 && kubelet >= 0);
    weft_folder_rival(dir, "nvidia.com/gpu", name);
    CHECK_STR(name, "nvidia-gpu.sock");
    weft_folder_rival(dir, "amd.com/gpu", name);
    CHECK_STR(name, "");
    CHECK_INT(close(fd), 0); /* the socket's file stays, nobody listens */
    weft_folder_rival(dir, "nvidia.com/gpu", name);
    CHECK_STR(name, "");
    weft_folder_others(dir, "own.sock", text, sizeof(text));
    CHECK_STR(text, "rdma-shared.sock");
    weft_folder_others(dir, "own.sock", short_text, sizeof(short_text)); /* no half names */
    CHECK_STR(short_text, "");
    CHECK(other >= 0);
}

WEFT_SUITE(rivalry, {"twice within a minute is a rival", twice_within_a_minute_is_a_rival},
           {"each time it keeps away longer", each_time_it_keeps_away_longer},
           {"peace is forgiven", peace_is_forgiven},
           {"waits are spread downwards", waits_are_spread_downwards},
           {"others' sockets are known by name", others_sockets_are_known_by_name},
           {"only the living count", only_the_living_count})
