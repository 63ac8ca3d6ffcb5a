/* SPDX-License-Identifier: Apache-2.0 */
/* Measure 2: gRPC's event engine runs its work on our loop.
 * Reason: the default engine owns a pool of threads and a timer thread that wakes every second.
 * How: the public hook for one's own engine, of which gRPC 1.51 uses only the task part; the
 *   queue itself is C (quiet-queue.c). Sockets stay with gRPC's own poller.
 * Check: test_rpc counts threads and reconnects to a server that comes late (its back-off is what
 *   runs here); a call of a part that 1.51 does not use ends the program at once.
 * Fallback: leave out weft_engine_install: more threads and a wake-up a second, nothing else. */
#include <grpc/event_engine/event_engine.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "pkg/rpc/quiet.h"

namespace
{

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

/* gRPC's two kinds of work: a closure that it owns, or a function that it gives away. */
struct Work : weft_engine_task {
    Work(EventEngine::Closure *c, absl::AnyInvocable<void()> f)
        : weft_engine_task{}, closure(c), function(std::move(f))
    {
    }
    EventEngine::Closure *closure;
    absl::AnyInvocable<void()> function;
};

class LoopEngine final : public EventEngine
{
  public:
    bool IsWorkerThread() override
    {
        return false;
    }
    void Run(Closure *closure) override
    {
        (void)weft_engine_add(0, new Work(closure, nullptr));
    }
    void Run(absl::AnyInvocable<void()> function) override
    {
        (void)weft_engine_add(0, new Work(nullptr, std::move(function)));
    }
    TaskHandle RunAfter(Duration when, Closure *closure) override
    {
        return {{weft_engine_add(when.count(), new Work(closure, nullptr)), 0}};
    }
    TaskHandle RunAfter(Duration when, absl::AnyInvocable<void()> function) override
    {
        return {{weft_engine_add(when.count(), new Work(nullptr, std::move(function))), 0}};
    }
    bool Cancel(TaskHandle handle) override
    {
        std::unique_ptr<Work> work(static_cast<Work *>(weft_engine_cancel(handle.keys[0])));
        return work != nullptr;
    }

    /* Not used by gRPC 1.51 as Debian builds it. */
    absl::StatusOr<std::unique_ptr<Listener>>
    CreateListener(Listener::AcceptCallback, absl::AnyInvocable<void(absl::Status)>,
                   const EndpointConfig &, std::unique_ptr<MemoryAllocatorFactory>) override
    {
        std::abort();
    }
    ConnectionHandle Connect(OnConnectCallback, const ResolvedAddress &, const EndpointConfig &,
                             MemoryAllocator, Duration) override
    {
        std::abort();
    }
    bool CancelConnect(ConnectionHandle) override
    {
        std::abort();
    }
    std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions &) override
    {
        std::abort();
    }
};

} // namespace

void weft_engine_run(struct weft_engine_task *task)
{
    std::unique_ptr<Work> owned(static_cast<Work *>(task));
    if (owned->closure != nullptr) {
        owned->closure->Run();
    } else {
        owned->function();
    }
}

void weft_engine_install(void)
{
    grpc_event_engine::experimental::SetEventEngineFactory(
        [] { return std::make_unique<LoopEngine>(); });
}
