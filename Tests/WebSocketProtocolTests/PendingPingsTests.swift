import Testing
import WebSocketProtocol

@Suite("Pings and their Pongs, RFC 6455 §5.5.2 and §5.5.3")
struct PendingPingsTests {
    private func ledger(_ payloads: [UInt8]) -> PendingPings {
        var ledger = PendingPings()
        for (number, payload) in payloads.enumerated() {
            #expect(Self.sent(&ledger, UInt64(number), [payload]))
        }
        return ledger
    }

    private static func sent(_ ledger: inout PendingPings, _ number: UInt64, _ payload: [UInt8]) -> Bool {
        ledger.pingSent(number, payload: payload)
    }

    private func expect(
        _ ledger: inout PendingPings, _ pong: [UInt8], toAnswer numbers: [UInt64],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let answered = ledger.pongReceived(pong)
        #expect(answered == numbers, sourceLocation: sourceLocation)
    }

    @Test func pingsAreCompletedInOrder() {
        var ledger = self.ledger([10, 11, 12])
        self.expect(&ledger, [10], toAnswer: [0])
        self.expect(&ledger, [11], toAnswer: [1])
        self.expect(&ledger, [12], toAnswer: [2])
        self.expect(&ledger, [12], toAnswer: [])
    }

    @Test func pongAnswersEveryEarlierPingToo() {
        var ledger = self.ledger([10, 11, 12, 13])
        self.expect(&ledger, [12], toAnswer: [0, 1, 2])
        self.expect(&ledger, [11], toAnswer: [])
        self.expect(&ledger, [13], toAnswer: [3])
    }

    @Test func unsolicitedPongIsIgnored() {
        var ledger = self.ledger([10])
        self.expect(&ledger, [99], toAnswer: [])
        self.expect(&ledger, [], toAnswer: [])
        self.expect(&ledger, [10, 0], toAnswer: [])
        self.expect(&ledger, [10], toAnswer: [0])
        var empty = PendingPings()
        self.expect(&empty, [], toAnswer: [])
    }

    @Test func numberOfPendingPingsIsBounded() {
        var ledger = PendingPings()
        for number in 0..<PendingPings.limit {
            #expect(Self.sent(&ledger, UInt64(number), [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]))
        }
        #expect(!Self.sent(&ledger, 5_000, [1]))
        self.expect(&ledger, [1], toAnswer: [])
        self.expect(&ledger, [0, 0], toAnswer: [0])
        #expect(Self.sent(&ledger, 5_001, [1]))
        self.expect(&ledger, [1], toAnswer: (1..<UInt64(PendingPings.limit)).map { $0 } + [5_001])
    }

    @Test func emptyPingsAreAnsweredOneByOne() {
        var ledger = PendingPings()
        for number: UInt64 in 1...3 { #expect(Self.sent(&ledger, number, [])) }
        // Three pings with equal payload and three pongs: each pong answers one ping.
        self.expect(&ledger, [], toAnswer: [1])
        self.expect(&ledger, [], toAnswer: [2])
        self.expect(&ledger, [], toAnswer: [3])
        self.expect(&ledger, [], toAnswer: [])
    }
}
