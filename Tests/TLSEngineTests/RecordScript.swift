import TLSEngine
import Testing

/// Valid or invalid records that a peer sends after the handshake.
struct RecordScript: Sendable, CustomTestStringConvertible {
    enum Step: Sendable {
        case record(UInt8, [UInt8])
        /// Bytes as they are.
        case raw([UInt8])
        /// The previous record again.
        case again
        /// The peer's next key.
        case newKey
    }

    let testDescription: String
    let steps: [Step]
    let seen: [RecordEnd.Seen]

    init(_ description: String, _ steps: [Step], _ seen: [RecordEnd.Seen]) {
        self.testDescription = description
        self.steps = steps
        self.seen = seen
    }

    /// - Parameter fault: the violation caused by the last step.
    init(_ description: String, _ steps: [Step], is fault: RecordViolation) {
        self.init(description, steps, [.failed(.peer(fault))])
    }

    var asksForKeys: Bool {
        self.steps.contains { if case .record(22, [24, 0, 0, 1, 1]) = $0 { true } else { false } }
    }

    static func data(_ bytes: UInt8...) -> Step { .record(23, bytes) }
    static func alert(_ bytes: UInt8...) -> Step { .record(21, bytes) }
    static func message(_ bytes: UInt8...) -> Step { .record(22, bytes) }
    static let keyUpdate: [Step] = [message(24, 0, 0, 1, 0), .newKey]

    func wire(_ suite: RecordSuite) throws -> [UInt8] {
        guard let key = RecordEnd.key(suite, RecordEnd.theirs, .sealing) else { throw RecordEnd.CreationFailure() }
        return self.wire(under: key)
    }

    /// - Parameter initial: the peer's first key.
    func wire(under initial: consuming RecordKey) -> [UInt8] {
        var key = initial
        let output = CiphertextBuffer()
        var wire: [UInt8] = []
        var last: [UInt8] = []
        for step in self.steps {
            switch step {
            case .record(let type, let content):
                let isSealed = key.seal(type, content.span.bytes, to: output)
                #expect(isSealed)
                last = output.take { bytes in bytes.withUnsafeBytes { Array($0) } }
                wire += last
            case .raw(let bytes): wire += bytes
            case .again: wire += last
            case .newKey:
                let isUpdated = key.update()
                #expect(isUpdated)
            }
        }
        return wire
    }
}

extension RecordScript {
    private static let full = [UInt8](repeating: 0x5A, count: 1 << 14)

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    static let rightOnes = [
        RecordScript("data", [data(1), data(2, 3)], [.bytes([1]), .bytes([2, 3])]),
        RecordScript("data without bytes", [data(), data(4), data()], [.bytes([4])]),
        RecordScript("zeros", [data(0, 0, 0)], [.bytes([0, 0, 0])]),
        RecordScript("padding", [.record(0, [1, 2, 23, 0, 0, 0]), data(3)], [.bytes([1, 2]), .bytes([3])]),
        RecordScript("padding and no data", [.record(0, [23, 0]), data(3)], [.bytes([3])]),
        RecordScript("the longest content", [.record(23, full)], [.bytes(full)]),
        RecordScript(
            "content and padding of the longest record", [.record(0, full.dropLast() + [23]), data(1)],
            [.bytes(full.dropLast()), .bytes([1])]),
        RecordScript(
            "a byte in the longest padding", [.record(0, [9, 23] + zeros(full.count - 2)), data(1)],
            [.bytes([9]), .bytes([1])]),
        RecordScript("close_notify", [data(1), alert(1, 0)], [.bytes([1]), .closed]),
        RecordScript("close_notify that says fatal", [alert(2, 0), data(1)], [.closed]),
        RecordScript("user_canceled, then its close_notify", [alert(1, 90), alert(1, 0)], [.closed]),
        RecordScript("an alert that ends", [data(1), alert(2, 40), data(2)], [.bytes([1]), .alert(40)]),
        RecordScript("an unknown alert that says warning", [alert(1, 255)], [.alert(255)]),
        RecordScript("a key update", [data(1)] + keyUpdate + [data(2)], [.bytes([1]), .bytes([2])]),
        RecordScript("two key updates", keyUpdate + keyUpdate + [data(2)], [.bytes([2])]),
        RecordScript(
            "a key update in parts", [message(24), message(0, 0), message(1, 1), .newKey, data(2)], [.bytes([2])]),
        RecordScript(
            "as much overhead as may be, twice",
            Array(repeating: data(), count: 32) + [data(1)] + Array(repeating: data(), count: 32) + [data(2)],
            [.bytes([1]), .bytes([2])]),
    ]

    static let wrongOnes = [
        RecordScript(
            "a ChangeCipherSpec", [.raw([0x14, 3, 3, 0, 1, 1])], is: .unexpectedRecord(type: 20)),
        RecordScript("an alert in the clear", [.raw([0x15, 3, 3, 0, 2, 2, 40])], is: .unexpectedRecord(type: 21)),
        RecordScript(
            "something else than TLS", [.raw(Array("GET / HTTP/1.1\r\n".utf8))], is: .unexpectedRecord(type: 71)),
        RecordScript("a length above the longest", [.raw([0x17, 3, 3, 0x41, 1])], is: .recordTooLong),
        RecordScript("no room for a tag", [.raw([0x17, 3, 3, 0, 15] + zeros(15))], is: .badRecordMAC),
        RecordScript("no bytes at all", [.raw([0x17, 3, 3, 0, 0])], is: .badRecordMAC),
        RecordScript("noise", [.raw([0x17, 3, 3, 0, 20] + [UInt8](1...20))], is: .badRecordMAC),
        RecordScript("a record once more", [data(1), .again], [.bytes([1]), .failed(.peer(.badRecordMAC))]),
        RecordScript("one byte too much", [.record(23, full + [1])], is: .recordTooLong),
        RecordScript("padding behind the longest content", [.record(0, full + [23])], is: .recordTooLong),
        RecordScript("a byte in too much padding", [.record(0, [9, 23] + zeros(full.count - 1))], is: .recordTooLong),
        RecordScript("an alert in too much padding", [.record(0, [1, 0, 21] + zeros(full.count))], is: .recordTooLong),
        RecordScript("the most padding that a header allows", [.record(0, [23] + zeros(16_622))], is: .recordTooLong),
        RecordScript("too much padding and no type", [.record(0, zeros(full.count + 1))], is: .recordTooLong),
        RecordScript("nothing but padding", [.record(0, [0, 0])], is: .noContentType),
        RecordScript("no content type", [.record(0, [])], is: .noContentType),
        RecordScript("an unknown content type", [.record(99, [1])], is: .unexpectedContent(type: 99)),
        RecordScript("a protected ChangeCipherSpec", [.record(20, [1])], is: .unexpectedContent(type: 20)),
        RecordScript("an empty alert", [alert()], is: .emptyMessage),
        RecordScript("half an alert", [alert(1)], is: .notOneAlert),
        RecordScript("two alerts", [alert(1, 0, 1, 0)], is: .notOneAlert),
        RecordScript("an empty message", [message()], is: .emptyMessage),
        RecordScript("a ClientHello", [message(1, 0, 0, 1, 0)], is: .unexpectedMessage(type: 1)),
        RecordScript("a certificate that nobody asked for", [message(11)], is: .unexpectedMessage(type: 11)),
        RecordScript("a long key update", [message(24, 0, 0, 2, 0, 0)], is: .malformedKeyUpdate),
        RecordScript("a very long key update", [message(24, 1)], is: .malformedKeyUpdate),
        RecordScript("an empty key update", [message(24, 0, 0, 0)], is: .malformedKeyUpdate),
        RecordScript("a key update of 2", [message(24, 0, 0, 1, 2)], is: .invalidKeyUpdateRequest(2)),
        RecordScript(
            "two key updates in a record", [message(24, 0, 0, 1, 0, 24, 0, 0, 1, 0)], is: .messageAcrossKeyChange),
        RecordScript("data amid a message", [message(24, 0), data(1)], is: .interruptedMessage),
        RecordScript("nothing amid a message", [message(24, 0), data()], is: .interruptedMessage),
        RecordScript("an alert amid a message", [message(24, 0), alert(1, 0)], is: .interruptedMessage),
        RecordScript("the old key after a key update", [message(24, 0, 0, 1, 0), data(1)], is: .badRecordMAC),
        RecordScript("too much overhead", Array(repeating: data(), count: 33), is: .tooManyNonDataRecords),
        RecordScript(
            "too many key updates", Array(repeating: keyUpdate, count: 33).flatMap(\.self), is: .tooManyNonDataRecords),
        RecordScript("too many warnings", Array(repeating: alert(1, 90), count: 33), is: .tooManyNonDataRecords),
    ]
}
