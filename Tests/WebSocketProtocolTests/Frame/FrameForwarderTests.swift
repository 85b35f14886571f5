import ByteKernels
import Testing
import WebSocketProtocol

@Suite("Frames forwarded between two WebSockets, RFC 6455 §5")
struct FrameForwarderTests {
    typealias Event = ForwarderDriver.Event

    /// The same frames as sent: a client's with the driver's masking keys.
    private func leaving(_ frames: [WireFrame]) -> [UInt8] {
        var last: UInt8 = 0
        return frames.flatMap { frame in
            var frame = frame
            last += 1
            if frame.key != nil { frame.key = [last, 0, 0, 0] }
            return frame.bytes
        }
    }

    private func frames(from sender: Role) -> [WireFrame] {
        let lengths = [0, 1, 7, 125, 126, 1000, 65_535, 65_536]
        return lengths.map { WireFrame(0x82, (0..<$0).map { UInt8(truncatingIfNeeded: $0 &* 7) }, from: sender) } + [
            WireFrame(0x01, "Fl", from: sender), WireFrame(0x00, from: sender),
            WireFrame(0x00, [0xC3], from: sender), WireFrame(0x80, [0xBC] + Array("sse".utf8), from: sender),
            WireFrame(0x81, "ὕδωρ", from: sender), WireFrame(0x02, [0xFF], from: sender),
            WireFrame(0x80, from: sender),
        ]
    }

    @Test(arguments: Role.both, [false, true])
    func everyFrameLeavesAsItCameInAnyCut(_ sender: Role, _ takesWholeMessages: Bool) {
        let frames = self.frames(from: sender)
        let expected = self.leaving(frames)
        for feeding in Feeding.usual {
            let driver = ForwarderDriver.observe(
                frames.flatMap(\.bytes), from: sender, fed: feeding, takesWholeMessages: takesWholeMessages)
            #expect(driver.forwarded == expected, "fed \(feeding)")
            #expect(driver.events.isEmpty, "fed \(feeding)")
            #expect(driver.mostKept < FrameHeader.maximumSize, "fed \(feeding)")
            #expect(driver.runs.map(\.messageCount).reduce(0, +) == 11, "fed \(feeding)")
            let payload = frames.map(\.payload.count).reduce(0, +)
            #expect(driver.runs.map(\.payloadCount).reduce(0, +) == payload, "fed \(feeding)")
        }
    }

    @Test(arguments: Role.both)
    func singleFrameMessageIsForwardedAtOnce(_ sender: Role) {
        let payload = [UInt8](repeating: 0x61, count: 130)
        let taken = [
            WireFrame(0x82, payload, from: sender), WireFrame(0x81, "ὕδωρ", from: sender),
            WireFrame(0x81, from: sender),
        ]
        for frame in taken { #expect(self.takeWhole(frame.bytes, from: sender) == self.leaving([frame])) }
        let left = [
            WireFrame(0x81, [0xC3], from: sender).bytes, WireFrame(0x01, payload, from: sender).bytes,
            WireFrame(0x89, from: sender).bytes, WireFrame(0xC2, payload, from: sender).bytes,
            WireFrame(0x82, payload, from: sender).bytes.dropLast(), WireFrame(0x82, payload, from: sender).bytes + [0],
            WireFrame(0x82, payload, from: sender.other).bytes,
        ]
        for bytes in left { #expect(self.takeWhole(bytes, from: sender) == nil) }
    }

    /// The sent bytes if a message was taken; otherwise nothing may have changed.
    private func takeWhole(_ bytes: [UInt8], from sender: Role) -> [UInt8]? {
        var forwarder = FrameForwarder(from: sender, maximumMessageSize: 200, keys: MaskingKeys { (1, []) })
        var (changed, position) = (bytes, 0)
        let run = changed.withMutableRawSpan { forwarder.nextWholeMessage(&$0, at: &position) }
        #expect(run != nil || (changed == bytes && position == 0))
        #expect(run == nil || (run?.range == 0..<bytes.count && position == bytes.count && run?.messageCount == 1))
        return run.map { _ in changed }
    }

    @Test(arguments: Role.both)
    func adjacentFramesAreForwardedTogether(_ sender: Role) {
        let bytes = self.frames(from: sender).flatMap(\.bytes)
        #expect(ForwarderDriver.observe(bytes, from: sender, fed: .whole).runs.count == 1)
    }

    @Test(arguments: Role.both)
    func controlFramesAreRemovedFromTheRelay(_ sender: Role) {
        let data = [
            WireFrame(0x01, "Hel", from: sender), WireFrame(0x80, "lo", from: sender),
            WireFrame(0x82, [UInt8](repeating: 0, count: 300), from: sender),
        ]
        let ends = (1...3).map { self.leaving(Array(data[..<$0])).count }
        let bytes =
            WireFrame(0x89, "0", from: sender).bytes + data[0].bytes + WireFrame(0x89, "1", from: sender).bytes
            + WireFrame(0x8A, from: sender).bytes + data[1].bytes + data[2].bytes
            + WireFrame(0x88, [0x03, 0xE8], from: sender).bytes + WireFrame(0x82, "later", from: sender).bytes
        for feeding in Feeding.usual {
            let driver = ForwarderDriver.observe(bytes, from: sender, fed: feeding)
            #expect(driver.forwarded == self.leaving(data), "fed \(feeding)")
            #expect(
                driver.events == [
                    Event(observation: .ping([0x30]), place: 0), Event(observation: .ping([0x31]), place: ends[0]),
                    Event(observation: .pong([]), place: ends[0]),
                    Event(observation: .close(1000, reason: []), place: ends[2]),
                ], "fed \(feeding)")
        }
    }

    @Test(arguments: Role.both)
    func frameBoundariesAreTracked(_ sender: Role) {
        let frames = self.frames(from: sender)
        var ends: [Int] = []
        for frame in frames { ends.append((ends.last ?? 0) + frame.bytes.count) }
        let driver = ForwarderDriver.observe(frames.flatMap(\.bytes), from: sender, fed: .byByte)
        #expect(driver.boundaries == ends)
    }

    /// A relay that may only finish the current frame gets only the rest of that frame.
    @Test(arguments: Role.both)
    func restOfAFrameDiffersFromTheNextFrame(_ sender: Role) throws {
        let first = WireFrame(0x02, "whole", from: sender).bytes
        let last = WireFrame(0x80, "last", from: sender).bytes
        let driver = ForwarderDriver(from: sender)
        driver.feed(Array(first.dropLast(3)))
        #expect(driver.runs.last?.rest == nil && driver.runs.last?.endsFrame == false)
        driver.feed(Array(first.suffix(3).dropLast()))
        #expect(driver.runs.last?.rest == driver.runs.last, "all of it is the rest")
        driver.feed(first.suffix(1) + last + WireFrame(0x82, "next", from: sender).bytes.dropLast())
        let run = try #require(driver.runs.last)
        #expect(!run.endsFrame && run.messageCount == 1 && run.payloadCount == 1 + 4 + 3)
        let rest = try #require(run.rest)
        #expect(rest.range == 0..<1 && rest.payloadCount == 1 && rest.messageCount == 0 && rest.endsFrame)
    }

    @Test(arguments: Role.both)
    func longMessageIsRejectedAtItsHead(_ sender: Role) {
        let good = [WireFrame(0x02, "abc", from: sender), WireFrame(0x00, "de", from: sender)]
        let bytes = good.flatMap(\.bytes) + WireFrame(0x80, [], from: sender, claimed: 1).bytes
        for feeding in Feeding.usual {
            let driver = ForwarderDriver.observe(bytes, from: sender, limit: 5, fed: feeding)
            #expect(driver.forwarded == self.leaving(good), "fed \(feeding)")
            #expect(
                driver.events == [
                    Event(observation: .violation(.messageTooLong), place: self.leaving(good).count)
                ], "fed \(feeding)")
        }
    }

    @Test(
        arguments: Role.both,
        [
            (0x83, PeerViolation.Rule.reservedOpcode), (0xC2, .reservedBits), (0x80, .unexpectedContinuation),
            (0x8B, .reservedOpcode), (0x09, .fragmentedControlFrame),
        ] as [(UInt8, PeerViolation.Rule)])
    func framesBeforeABreachStillLeave(_ sender: Role, _ breach: (UInt8, PeerViolation.Rule)) {
        let good = [WireFrame(0x81, "good", from: sender)]
        let bytes = good[0].bytes + WireFrame(breach.0, "bad", from: sender).bytes
        for feeding in Feeding.usual {
            let driver = ForwarderDriver.observe(bytes, from: sender, fed: feeding)
            #expect(driver.forwarded == self.leaving(good), "fed \(feeding)")
            #expect(driver.events.map(\.observation) == [.violation(breach.1)], "fed \(feeding)")
        }
    }

    /// Invalid by one byte, and by an end inside a character, also with an empty frame.
    @Test(arguments: Role.both)
    func invalidTextIsRejected(_ sender: Role) {
        let good = [WireFrame(0x82, [0xFF], from: sender), WireFrame(0x01, "good", from: sender)]
        let bad = [
            [WireFrame(0x80, [0x61, 0xFF], from: sender)], [WireFrame(0x80, [0x61, 0xC3], from: sender)],
            [WireFrame(0x00, [0xC3], from: sender), WireFrame(0x80, from: sender)],
        ]
        for frames in bad {
            for feeding in Feeding.usual {
                let bytes = (good + frames).flatMap(\.bytes) + WireFrame(0x89, from: sender).bytes
                let driver = ForwarderDriver.observe(bytes, from: sender, fed: feeding)
                #expect(driver.events.map(\.observation) == [.violation(.invalidUTF8)], "fed \(feeding)")
                #expect(driver.forwarded.starts(with: self.leaving(good)), "fed \(feeding)")
                #expect(self.leaving(good + frames).starts(with: driver.forwarded), "fed \(feeding)")
                #expect(driver.forwarded.count < self.leaving(good + frames).count, "fed \(feeding)")
            }
        }
    }

    @Test(arguments: Role.both)
    func invalidFrameIsNotForwarded(_ sender: Role) {
        let good = [WireFrame(0x81, "good", from: sender)]
        let bytes = good[0].bytes + WireFrame(0x81, [0x61, 0x62, 0xFF], from: sender).bytes
        let driver = ForwarderDriver.observe(bytes, from: sender, fed: .whole)
        #expect(driver.forwarded == self.leaving(good))
        #expect(driver.boundaries.last == driver.forwarded.count)
    }

    /// A consumer that stops after each event gets the same events when it continues.
    @Test(arguments: Role.both)
    func stoppedConsumerLosesNoBytes(_ sender: Role) {
        let bytes =
            WireFrame(0x81, "one", from: sender).bytes + WireFrame(0x89, from: sender).bytes
            + WireFrame(0x81, "two", from: sender).bytes + WireFrame(0x81, [0xFF], from: sender).bytes
        let whole = ForwarderDriver.observe(bytes, from: sender, fed: .whole)
        let driver = ForwarderDriver(from: sender)
        driver.feed(bytes, mostEvents: 1)
        for _ in 0..<4 { driver.feed([], mostEvents: 1) }
        #expect(driver.forwarded == whole.forwarded && driver.events == whole.events)
        #expect(driver.events.map(\.observation) == [.ping([]), .violation(.invalidUTF8)])
    }
}
