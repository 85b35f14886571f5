import Testing
import WebSocketProtocol

@Suite("Pings and their Pongs, RFC 6455 §5.5.2 and §5.5.3")
struct PendingPingsTests {
    private func pings(_ payloads: [UInt8]) -> PendingPings {
        var pings = PendingPings()
        for (number, payload) in payloads.enumerated() {
            #expect(Self.sent(&pings, UInt64(number), [payload]))
        }
        return pings
    }

    private static func sent(_ pings: inout PendingPings, _ number: UInt64, _ payload: [UInt8]) -> Bool {
        pings.pingSent(number, payload: payload)
    }

    private func expect(
        _ pings: inout PendingPings, _ pong: [UInt8], toAnswer numbers: [UInt64],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let answered = pings.pongReceived(pong)
        #expect(answered == numbers, sourceLocation: sourceLocation)
    }

    @Test func pingsAreCompletedInOrder() {
        var pings = self.pings([10, 11, 12])
        self.expect(&pings, [10], toAnswer: [0])
        self.expect(&pings, [11], toAnswer: [1])
        self.expect(&pings, [12], toAnswer: [2])
        self.expect(&pings, [12], toAnswer: [])
    }

    @Test func pongAnswersEveryEarlierPingToo() {
        var pings = self.pings([10, 11, 12, 13])
        self.expect(&pings, [12], toAnswer: [0, 1, 2])
        self.expect(&pings, [11], toAnswer: [])
        self.expect(&pings, [13], toAnswer: [3])
    }

    @Test func unsolicitedPongIsIgnored() {
        var pings = self.pings([10])
        self.expect(&pings, [99], toAnswer: [])
        self.expect(&pings, [], toAnswer: [])
        self.expect(&pings, [10, 0], toAnswer: [])
        self.expect(&pings, [10], toAnswer: [0])
        var empty = PendingPings()
        self.expect(&empty, [], toAnswer: [])
    }

    @Test func numberOfPendingPingsIsBounded() {
        var pings = PendingPings()
        for number in 0..<PendingPings.limit {
            #expect(Self.sent(&pings, UInt64(number), [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]))
        }
        #expect(!Self.sent(&pings, 5_000, [1]))
        self.expect(&pings, [1], toAnswer: [])
        self.expect(&pings, [0, 0], toAnswer: [0])
        #expect(Self.sent(&pings, 5_001, [1]))
        self.expect(&pings, [1], toAnswer: (1..<UInt64(PendingPings.limit)).map { $0 } + [5_001])
    }

    @Test func emptyPingsAreAnsweredOneByOne() {
        var pings = PendingPings()
        for number: UInt64 in 1...3 { #expect(Self.sent(&pings, number, [])) }
        // Three pings with equal payload and three pongs: each pong answers one ping.
        self.expect(&pings, [], toAnswer: [1])
        self.expect(&pings, [], toAnswer: [2])
        self.expect(&pings, [], toAnswer: [3])
        self.expect(&pings, [], toAnswer: [])
    }
}
