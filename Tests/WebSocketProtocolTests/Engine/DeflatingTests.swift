import TestSupport
import Testing
import WebSocketProtocol

@Suite("Deflating and inflating again, RFC 7692 §7.2.1")
struct DeflatingTests {
    /// Bytes with many and with few repetitions.
    private static func payload(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        while bytes.count < count {
            if bytes.count > 10, Bool.random(using: &generator) {
                let back = Int.random(in: 1...min(bytes.count, 40_000), using: &generator)
                let start = bytes.count - back
                bytes += bytes[start..<min(start + Int.random(in: 3...400, using: &generator), bytes.count)]
            } else {
                bytes += generator.bytes(Int.random(in: 1...50, using: &generator))
            }
        }
        return Array(bytes.prefix(count))
    }

    private func roundTrip(_ sender: Role, _ parameters: PermessageDeflateParameters, _ policy: DeflatePolicy) {
        let share = DeflateContext()
        let writer = EngineSender(sender, parameters, policy: policy, share: share)
        let setting = EngineSetting.receiving(from: sender, deflate: parameters)
        let driver = EngineDriver(setting, share: share)
        var sent: [UInt8] = []
        var expected: [Observation] = []
        for (index, count) in [0, 1, 5, 300, 70_000, 0, 0, 40_000, 300].enumerated() {
            let bytes = Self.payload(count, seed: UInt64(index % 4))
            let third = count / 3
            let fragments = index % 2 == 0 ? [bytes] : [Array(bytes[..<third]), [], Array(bytes[third...])]
            let wire = writer.message(.binary, fragments)
            driver.feed(wire)
            sent += wire
            expected.append(.binary(bytes))
        }
        #expect(driver.seen.messages == expected)
        let cut = EngineDriver.observe(sent, by: setting, fed: .cut(seed: 3, longest: 500))
        #expect(cut == driver.seen)
    }

    @Test(arguments: Role.both, 8...15)
    func messageIsInflatedForEveryWindowAndTakeover(_ sender: Role, _ bits: Int) {
        for keeps in [true, false] {
            for granted in [true, false] {
                let parameters = PermessageDeflateParameters(
                    serverNoContextTakeover: !granted, clientNoContextTakeover: !granted, serverMaxWindowBits: bits,
                    clientMaxWindowBits: bits)
                self.roundTrip(sender, parameters, DeflatePolicy(ownContextTakeover: keeps, minimumSize: 0))
            }
        }
    }

    @Test(arguments: Role.both, 0...9)
    func messageIsInflatedForEveryLevel(_ sender: Role, _ level: Int) {
        self.roundTrip(sender, PermessageDeflateParameters(), DeflatePolicy(level: level, minimumSize: 0))
        self.roundTrip(
            sender, PermessageDeflateParameters(serverNoContextTakeover: true, clientNoContextTakeover: true),
            DeflatePolicy(ownWindowBits: 8, level: level, memoryLevel: 1, minimumSize: 0))
    }

    @Test func emptyMessageOfTheRFCIsSent() {
        let writer = EngineSender(
            .server, PermessageDeflateParameters(), policy: DeflatePolicy(minimumSize: 0), share: DeflateContext())
        // Flushed twice: the second flush has nothing to write.
        for _ in 0..<3 { #expect(writer.message(.text, [[]]) == [0xC1, 0x01, 0x00]) }
    }

    @Test func onlyTheFirstFrameOfACompressedMessageHasRSV1() {
        let writer = EngineSender(
            .server, PermessageDeflateParameters(serverNoContextTakeover: true), policy: DeflatePolicy(minimumSize: 64),
            share: DeflateContext())
        let long = [UInt8](repeating: 0x61, count: 64)
        #expect(writer.message(.text, [long])[0] == 0xC1)
        #expect(writer.message(.text, [Array(long.dropLast())])[0] == 0x81, "below the minimum size")
        #expect(writer.message(.text, [[0x61], long])[0] == 0x41, "of unknown size")
        let frames = EngineDriver.observe(
            writer.message(.binary, [long, long, long]),
            by: .receiving(from: .server, deflate: PermessageDeflateParameters()), fed: .whole)
        #expect(frames.messages == [.binary(long + long + long)], "and a bit on a continuation would be refused")
    }

    @Test func nothingIsCompressedWithoutAgreement() {
        let writer = EngineSender(.server, nil, policy: DeflatePolicy(minimumSize: 0), share: DeflateContext())
        let long = [UInt8](repeating: 0x61, count: 1_000)
        #expect(writer.message(.text, [long]) == [0x81, 0x7E, 0x03, 0xE8] + long)
    }

    @Test func earlierMessagesAreReferencedOnlyWithContextTakeover() {
        let text = Array("something to be said more than once, and found again".utf8)
        for (granted, keeps) in [(true, true), (true, false), (false, true), (false, false)] {
            let writer = EngineSender(
                .client, PermessageDeflateParameters(clientNoContextTakeover: !granted),
                policy: DeflatePolicy(ownContextTakeover: keeps, minimumSize: 0), share: DeflateContext())
            let first = writer.message(.text, [text]).count
            let second = writer.message(.text, [text]).count
            #expect((second < first / 2) == (granted && keeps), "granted \(granted), kept \(keeps)")
        }
    }
}
