#if DEBUG
    import StreamTransport
    import Testing

    /// Only debug builds check the calling thread.
    @Suite("Isolation to a loop")
    struct LoopIsolationTests {
        @Test func valueIsReachedOnItsLoop() async throws {
            let group = try LoopGroup(count: 1)
            defer { group.stop() }
            let isolated = LoopIsolated(LoopTimer(), on: group.loops[0])
            let deadline = await withCheckedContinuation { continuation in
                isolated.execute { timer in
                    isolated.loop.disarm(timer)
                    continuation.resume(returning: isolated.value.deadline)
                }
            }
            #expect(deadline == nil)
        }

        @Test func valueIsReachedWhileNoThreadRunsTheLoop() throws {
            let loop = Loop(system: try LinuxSystem())
            let isolated = LoopIsolated(LoopTimer(), on: loop)
            loop.arm(isolated.value, after: .seconds(1), target: TimerLog(loop))
            loop.turn()
            loop.disarm(isolated.value)
            #expect(isolated.value.deadline == nil)
        }

        @Test func accessFromAnotherThreadStopsTheProgram() async throws {
            let exit = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let group = try LoopGroup(count: 1)
                let isolated = LoopIsolated(LoopTimer(), on: group.loops[0])
                await withCheckedContinuation { started in group.loops[0].execute { started.resume() } }
                // A loop that is just between two turns does not notice.
                while true { _ = isolated.value }
            }
            let text = String(decoding: exit?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains("not on the loop's thread"))
        }

        @Test func loopCallFromAnotherThreadStopsTheProgram() async throws {
            let exit = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let group = try LoopGroup(count: 1)
                await withCheckedContinuation { started in group.loops[0].execute { started.resume() } }
                while true { group.loops[0].disarm(LoopTimer()) }
            }
            let text = String(decoding: exit?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains("not on the loop's thread"))
        }
    }
#endif
