import GatewayConfiguration
import GatewayCore
import TestSupport
import Testing

@Suite("Tunnel: two sides, two directions, one end")
struct TunnelMachineTests {
    struct Setting: Hashable, Sendable {
        var downstream: SideKind
        var upstream: SideKind
        var halfClose: HalfClose

        static let all = SideKind.allCases.flatMap { downstream in
            SideKind.allCases.flatMap { upstream in
                HalfClose.allCases.map { Setting(downstream: downstream, upstream: upstream, halfClose: $0) }
            }
        }

        var start: WatchedTunnel { WatchedTunnel(self.downstream, self.upstream, self.halfClose) }
    }

    @Test(arguments: Setting.all)
    func everyEventInEveryStateKeepsTheRules(_ setting: Setting) {
        var seen: Set<WatchedTunnel> = [setting.start]
        var waiting: [(WatchedTunnel, [TunnelEvent])] = [(setting.start, [])]
        while let (state, path) = waiting.popLast() {
            for event in TunnelEvent.all {
                var next = state
                let broken = next.apply(event)
                #expect(broken.isEmpty, "\(path) then \(event)")
                if !broken.isEmpty { return }
                if seen.insert(next).inserted { waiting.append((next, path + [event])) }
            }
        }
        #expect(seen.count > 50)
    }

    @Test(arguments: Setting.all)
    func everyStateEndsWhenTheClosingTimeIsOver(_ setting: Setting) {
        var seen: Set<WatchedTunnel> = [setting.start]
        var waiting = [setting.start]
        while let state = waiting.popLast() {
            var ending = state
            let rest: [TunnelEvent] = [.closingTimedOut, .closingTimedOut, .closed(.downstream), .closed(.upstream)]
            let broken = rest.flatMap { ending.apply($0) }
            #expect(broken.isEmpty)
            #expect(ending.ended && ending.machine.isOver)
            for event in TunnelEvent.all {
                var next = state
                _ = next.apply(event)
                if seen.insert(next).inserted { waiting.append(next) }
            }
        }
    }

    @Test(arguments: TunnelScript.all)
    func tunnelEndsAsTheScriptDecides(_ script: TunnelScript) {
        var machine = TunnelMachine(
            downstream: script.setting.downstream, upstream: script.setting.upstream,
            halfClose: script.setting.halfClose)
        var last = TunnelActions.none
        for (event, downstream, upstream) in script.steps {
            last = event.apply(to: &machine)
            #expect(last[.downstream] == downstream, "\(event)")
            #expect(last[.upstream] == upstream, "\(event)")
        }
        #expect(machine.termination?.description == script.reason)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func randomLivesKeepTheRules(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let setting = Setting.all[Int.random(in: 0..<Setting.all.count, using: &random)]
        var tunnel = setting.start
        var ends = 0
        for _ in 0..<60 {
            let event = TunnelEvent.all[Int.random(in: 0..<TunnelEvent.all.count, using: &random)]
            let wasEnded = tunnel.ended
            #expect(tunnel.apply(event).isEmpty, "seed \(seed)")
            if tunnel.ended, !wasEnded { ends += 1 }
        }
        #expect(ends <= 1, "seed \(seed)")
    }

    @Test func pendingDataIsRelayedUntilItsSinkIsClosed() {
        var machine = TunnelMachine(downstream: .stream, upstream: .webSocket, halfClose: .close)
        #expect(machine.relays(from: .downstream) && machine.relays(from: .upstream))
        _ = machine.inputFinished(.downstream)
        #expect(!machine.relays(from: .downstream) && machine.relays(from: .upstream))
        _ = machine.closeReceived(.upstream, .normal)
        #expect(!machine.relays(from: .upstream))
        #expect(machine.direction(from: .downstream) == .finished && machine.direction(from: .upstream) == .finished)
    }

    @Test func aDrainedWebSocketIsStillReadUntilItAnswers() {
        var machine = TunnelMachine(downstream: .webSocket, upstream: .stream, halfClose: .close)
        _ = machine.drainBegan()
        #expect(machine.relays(from: .downstream))
        #expect(!machine.relays(from: .upstream))
        #expect(machine.direction(from: .upstream) == .failed)
    }

    @Test func theClosingTimerStartsWithTheFirstClose() {
        var machine = TunnelMachine(downstream: .stream, upstream: .webSocket, halfClose: .close)
        #expect(machine.inputFinished(.downstream).startsClosingTimer)
        #expect(!machine.closeReceived(.upstream, .normal).startsClosingTimer)
    }

    @Test func endMarksAreWatchedOnlyBetweenAWebSocketAndASignallingStream() {
        for setting in Setting.all {
            let machine = setting.start.machine
            for side in TunnelSide.allCases {
                let mixed = machine.kind(of: side) == .webSocket && machine.kind(of: side.other) == .stream
                #expect(machine.watchesEndMark(from: side) == (mixed && setting.halfClose == .signal))
            }
        }
    }

    @Test(arguments: [1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014] as [UInt16])
    func aCloseThatNamesAFaultIsAResetTowardsAStream(_ code: UInt16) {
        var machine = TunnelMachine(downstream: .stream, upstream: .webSocket, halfClose: .close)
        let actions = machine.closeReceived(.upstream, CloseSignal(code: code))
        #expect(actions[.downstream] == .reset)
        #expect(machine.termination?.description == "upstream/relaying/abnormal-close(\(code))")
    }
}
