import HTTPTransport
import Testing
import WireText

@Suite("The life of an HTTP/2 stream, RFC 9113 §5.1, §8.1")
struct HTTP2StreamStateTests {
    private static let states: [HTTP2StreamState] = [.created, .open, .responded, .closed, .left]

    @Test func requestOpensTheStream() {
        let expected: [HTTP2StreamState] = [.open, .open, .responded, .closed, .left]
        for (state, next) in zip(Self.states, expected) {
            var state = state
            state.requestSent()
            #expect(state == next)
        }
    }

    @Test func endOfTheResponseIsDeliveredOnce() {
        let expected: [(HTTP2StreamState, HTTP2StreamState.InputEndedAction)] = [
            (.created, .ignore), (.responded, .deliverEnd), (.responded, .ignore), (.closed, .ignore), (.left, .ignore),
        ]
        for (state, (next, action)) in zip(Self.states, expected) {
            var state = state
            #expect(state.inputEnded() == action && state == next)
        }
    }

    @Test func closedStreamEndsAnExchangeWithoutAResponse() {
        let expected: [(HTTP2StreamState, HTTP2StreamState.StreamClosedAction)] = [
            (.left, .endExchange), (.left, .endExchange), (.closed, .awaitConsumer), (.closed, .awaitConsumer),
            (.left, .ignore),
        ]
        for (state, (next, action)) in zip(Self.states, expected) {
            var state = state
            #expect(state.streamClosed(holdsResponse: false) == action && state == next)
        }
    }

    @Test func closedStreamEndsAnExchangeAfterTheDeliveryOfWhatWasReceived() {
        let expected: [HTTP2StreamState.StreamClosedAction] = [
            .endExchangeAfterDelivery, .endExchangeAfterDelivery, .awaitConsumer, .awaitConsumer, .ignore,
        ]
        for (state, action) in zip(Self.states, expected) {
            var (state, wasLeft) = (state, state.isLeft)
            #expect(state.streamClosed(holdsResponse: true) == action && state == (wasLeft ? .left : .closed))
        }
    }

    @Test(arguments: [true, false])
    func exchangeThatLeavesResetsWhatIsNotComplete(_ isOutputFramed: Bool) {
        let expected: [HTTP2StreamState.ExchangeLeftAction] = [
            .ignore, .reset, isOutputFramed ? .awaitClose : .reset, .free, .ignore,
        ]
        for (state, action) in zip(Self.states, expected) {
            var state = state
            #expect(state.exchangeLeft(isOutputFramed: isOutputFramed) == action && state == .left)
        }
    }

    @Test func onlyAnOpenStreamReceives() {
        #expect(Self.states.map(\.receives) == [false, true, false, false, false])
        #expect(Self.states.map(\.sends) == [false, true, true, false, false])
        #expect(Self.states.map(\.isLeft) == [false, false, false, false, true])
    }
}

@Suite("The parts of a response that wait for the consumer")
struct PendingResponseTests {
    private static let head = PendingResponse.Part.head(ResponseHead(version: HTTPVersion(2, 0), status: 200))
    private static let end = PendingResponse.Part.end(trailers: [])

    private func pending(_ parts: [PendingResponse.Part]) -> PendingResponse {
        var pending = PendingResponse()
        for part in parts { pending.append(part) }
        return pending
    }

    @Test(arguments: [
        (PendingResponse.Demand.none, [0, 0, 0, 0]), (.end, [0, 0, 1, 1]), (.all, [1, 1, 1, 1]),
    ])
    func partsAreTakenAsTheyAreDemanded(_ demand: PendingResponse.Demand, _ expected: [Int]) {
        let parts = [Self.head, .content([1]), Self.end, .loss(ResponseLoss(nil))]
        for (part, count) in zip(parts, expected) {
            var pending = self.pending([part])
            #expect(pending.next(demand) == (count == 1 ? part : nil))
            #expect(pending.count == 1 - count)
        }
    }

    @Test func partsKeepTheirOrderAndContentIsJoined() {
        var pending = self.pending([Self.head])
        pending.append(([1, 2] as [UInt8]).span.bytes)
        pending.append(([3] as [UInt8]).span.bytes)
        pending.append(Self.end)
        #expect(pending.count == 3)
        var taken: [PendingResponse.Part] = []
        while let part = pending.next(.all) {
            taken.append(part)
            pending.partDelivered()
        }
        #expect(taken == [Self.head, .content([1, 2, 3]), Self.end] && pending.isEmpty)
    }

    @Test func nextPartWaitsForTheDeliveryOfTheOneBefore() {
        var pending = self.pending([Self.head, .content([1])])
        #expect(pending.next(.all) == Self.head)
        #expect(pending.next(.all) == nil && !pending.isEmpty)
        pending.append(([2] as [UInt8]).span.bytes)
        pending.append(Self.end)
        pending.partDelivered()
        pending.partDelivered()
        #expect(pending.next(.all) == .content([1, 2]))
        #expect(!pending.isEmpty)
        pending.partDelivered()
        #expect(pending.next(.end) == Self.end)
        #expect(!pending.isEmpty)
        pending.partDelivered()
        #expect(pending.isEmpty && pending.next(.all) == nil)
    }
}

@Suite("Windows of an HTTP/2 connection, RFC 9113 §5.2")
struct ReceiveWindowsTests {
    @Test func windowDoublesWhenAsMuchWasConsumed() {
        var windows = ReceiveWindows()
        #expect(windows.consumed(262_143, of: 1) == .init())
        #expect(windows.consumed(1, of: 1) == .init(streamWindow: 524_288))
        #expect(windows.consumed(524_288, of: 1) == .init(streamWindow: 1_048_576))
        #expect(windows.consumed(262_144, of: 1) == .init(connectionWindow: 2_097_152))
        #expect(windows.consumed(786_432, of: 1) == .init(streamWindow: 2_097_152))
    }

    @Test func windowsHaveALargestSize() {
        var windows = ReceiveWindows()
        var stream: [Int] = []
        var connection: [Int] = []
        for _ in 0..<1_000 {
            let action = windows.consumed(100_000, of: 1)
            if let size = action.streamWindow { stream.append(size) }
            if let size = action.connectionWindow { connection.append(size) }
        }
        #expect(stream == [512 << 10, 1 << 20, 2 << 20, 4 << 20])
        #expect(connection == [2 << 20, 4 << 20, 8 << 20, 16 << 20])
    }

    @Test func windowsOfAllStreamsAreBoundedTogether() {
        var windows = ReceiveWindows()
        var sizes: [Int32: Int] = [:]
        for _ in 0..<100 {
            for stream in stride(from: Int32(1), to: 101, by: 2) {
                if let size = windows.consumed(1 << 20, of: stream).streamWindow { sizes[stream] = size }
            }
        }
        let growth = sizes.values.reduce(0) { $0 + $1 - ReceiveWindows.initialStreamWindow }
        #expect(growth == ReceiveWindows.growthLimit)
        // A stream that ends leaves its share to the others.
        #expect(windows.consumed(4 << 20, of: 201).streamWindow == nil)
        windows.closed(1)
        windows.closed(1)
        #expect(windows.consumed(4 << 20, of: 201).streamWindow == 512 << 10)
    }
}
