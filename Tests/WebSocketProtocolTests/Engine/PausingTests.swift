import TestSupport
import ByteKernels
import Testing
import WebSocketProtocol

@Suite("A consumer that pauses and resumes")
struct PausingTests {
    /// Pulls one event, then waits until the transport offers the unconsumed bytes again, if there are any.
    private func pausing(_ bytes: [UInt8], by setting: EngineSetting, fed feeding: Feeding) -> [Observation] {
        let driver = EngineDriver(setting)
        for piece in feeding.pieces(of: bytes) {
            driver.arrive(piece)
            while driver.offer(mostEvents: 1) {
                let before = driver.seen.count + driver.sizes.count
                guard driver.offer(mostEvents: 1), driver.seen.count + driver.sizes.count > before else { break }
            }
        }
        return driver.seen
    }

    private func stream(from sender: Role) -> [UInt8] {
        var bytes: [UInt8] = []
        for matches in [0, 1, 253, 254, 255, 508, 1_000] {
            let payload = FixedBlock.repeating(0x61, matches: matches)
            bytes += WireFrame(0xC1, payload, from: sender).bytes
            let half = payload.count / 2
            bytes += WireFrame(0x42, Array(payload[..<half]), from: sender).bytes
            bytes += WireFrame(0x89, [UInt8(truncatingIfNeeded: matches)], from: sender).bytes
            bytes += WireFrame(0x80, Array(payload[half...]), from: sender).bytes
            bytes += WireFrame(0x81, "plain", from: sender).bytes
        }
        return bytes
    }

    @Test(
        arguments: Role.both,
        [
            Feeding.whole, .cut(seed: 1, longest: 9), .cut(seed: 2, longest: 900), .byByte,
        ])
    func pausingConsumerSeesTheSameAsAContinuousOne(_ sender: Role, _ feeding: Feeding) {
        let setting = EngineSetting.receiving(from: sender, deflate: InflatingTests.takeover)
        let bytes = self.stream(from: sender)
        let expected = EngineDriver.observe(bytes, by: setting, fed: .whole)
        #expect(expected.count == 7 * 5)
        #expect(EngineDriver.observe(bytes, by: setting, fed: feeding) == expected)
        #expect(self.pausing(bytes, by: setting, fed: feeding) == expected)
    }

    /// A message of any inflated size is delivered completely without further input.
    @Test(arguments: Role.both, [254, 255, 508, 509, 762, 1_016])
    func outputNeedsNoFurtherInput(_ sender: Role, _ matches: Int) {
        let setting = EngineSetting.receiving(from: sender, deflate: InflatingTests.takeover)
        let payload = FixedBlock.repeating(0x61, matches: matches)
        let expected = Observation.text(String(repeating: "a", count: 1 + 258 * matches))
        #expect(
            self.pausing(WireFrame(0xC1, payload, from: sender).bytes, by: setting, fed: .whole) == [expected])
        // The same if the frame continues: only its end is missing.
        let cut = WireFrame(0xC1, payload, from: sender, claimed: UInt64(payload.count) + 9).bytes
        let seen = self.pausing(cut, by: setting, fed: .whole)
        #expect(seen == [.piece(.text, [UInt8](repeating: 0x61, count: 1 + 258 * matches), starts: true)])
    }

    /// Wherever a stream is truncated, all its bytes are delivered; and every fragment ends in the same way.
    @Test(arguments: Role.both, [255, 509])
    func nothingIsHeldBackWhereverTheInputEnds(_ sender: Role, _ matches: Int) {
        let setting = EngineSetting.receiving(from: sender, deflate: InflatingTests.takeover)
        let payload = FixedBlock.repeating(0x61, matches: matches)
        for cut in (payload.count - 24)..<payload.count {
            let start = WireFrame(0x41, Array(payload[..<cut]), from: sender).bytes
            let end = WireFrame(0x80, Array(payload[cut...]), from: sender).bytes
            for bytes in [start, start.dropLast(), start + end] {
                let expected = EngineDriver.observe(bytes, by: setting, fed: .byByte)
                #expect(EngineDriver.observe(bytes, by: setting, fed: .whole) == expected, "cut at \(cut)")
                #expect(self.pausing(bytes, by: setting, fed: .whole) == expected, "cut at \(cut), pausing")
            }
        }
    }

    /// The limit below what was inflated already.
    @Test(arguments: [0, 1, 100, 100_000]) func limitLoweredInAMessageEndsIt(_ limit: Int) {
        var bytes = WireFrame(0xC2, FixedBlock.repeating(0x61, matches: 8_000), from: .client).bytes
        var engine = WebSocketEngine(role: .server, maximumMessageSize: nil)
        engine.startDeflate(InflatingTests.takeover, policy: DeflatePolicy(), context: DeflateContext())
        var position = 0
        var events: [WebSocketEvent] = []
        for number in 0..<10 {
            if number == 2 { engine.setMaximumMessageSize(limit) }
            guard let event = bytes.withMutableRawSpan({ engine.nextEvent(&$0, at: &position) }) else { break }
            events.append(event)
        }
        guard case .violation(let violation)? = events.last else {
            Issue.record("no violation: \(events.count) events")
            return
        }
        #expect(violation.rule == .messageTooLong)
    }

    /// Bytes that wait for output space are unmasked once: masking them again after each piece would take quadratic time.
    @Test func eachByteIsUnmaskedOnceHoweverMuchItInflatesTo() {
        let payload = FixedBlock.repeating(0x61, matches: 8_000)
        var bytes = WireFrame(0xC2, payload, from: .client).bytes
        var engine = WebSocketEngine(role: .server, maximumMessageSize: nil)
        engine.startDeflate(InflatingTests.takeover, policy: DeflatePolicy(), context: DeflateContext())
        var position = 0
        var inflated = 0
        var changes: [Int] = []
        while position < bytes.count {
            let before = bytes
            let event = bytes.withMutableRawSpan { engine.nextEvent(&$0, at: &position) }
            guard case .data(let chunk)? = event else { break }
            inflated += chunk.count
            changes.append(zip(before, bytes).count { $0 != $1 })
        }
        #expect(inflated == 1 + 258 * 8_000 && changes.count == 32)
        #expect(changes.first == payload.count && changes.dropFirst().allSatisfy { $0 == 0 })
    }
}
