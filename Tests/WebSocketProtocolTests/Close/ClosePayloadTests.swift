import Testing
import WebSocketProtocol

@Suite("Payload of our own Close frame, RFC 6455 §5.5.1 and §7.4")
struct ClosePayloadTests {
    @Test func codeIsBigEndianBeforeTheReason() {
        #expect(ClosePayload.encode(.goingAway, reason: Array("bye".utf8)) == [0x03, 0xE9, 0x62, 0x79, 0x65])
        #expect(ClosePayload.encode(CloseCode(rawValue: 4999), reason: []) == [0x13, 0x87])
    }

    @Test func payloadWithoutACodeIsEmpty() {
        #expect(ClosePayload.encode(nil, reason: Array("lost".utf8)) == [])
        #expect(ClosePayload.encode(.noStatusReceived, reason: []) == [])
    }

    @Test(arguments: [0, 999, 1004, 1006, 1015, 1016, 2999, 5000, 65_535] as [UInt16])
    func reservedCodeIsNeverSent(_ code: UInt16) {
        #expect(ClosePayload.encode(CloseCode(rawValue: code), reason: []) == [0x03, 0xE8])
    }

    @Test(arguments: [
        (String(repeating: "a", count: 123), 123), (String(repeating: "a", count: 124), 123),
        // Characters of two, three and four bytes that just fit, and ones that do not.
        (String(repeating: "a", count: 121) + "é", 123), (String(repeating: "a", count: 121) + "éb", 123),
        (String(repeating: "a", count: 122) + "é", 122), (String(repeating: "a", count: 120) + "水b", 123),
        (String(repeating: "a", count: 121) + "水", 121), (String(repeating: "a", count: 122) + "水", 122),
        (String(repeating: "a", count: 119) + "🙂b", 123), (String(repeating: "a", count: 120) + "🙂", 120),
        (String(repeating: "a", count: 122) + "🙂", 122), (String(repeating: "é", count: 100), 122),
    ])
    func longReasonIsCutBetweenCharacters(_ reason: String, _ kept: Int) {
        let bytes = Array(reason.utf8)
        #expect(ClosePayload.encode(.normalClosure, reason: bytes) == [0x03, 0xE8] + bytes.prefix(kept))
    }

    @Test(arguments: TextTests.invalid.map(\.0) + TextTests.incomplete + [[UInt8](repeating: 0x80, count: 300)])
    func reasonThatIsNotTextIsLeftOut(_ reason: [UInt8]) {
        #expect(ClosePayload.encode(.normalClosure, reason: reason) == [0x03, 0xE8])
    }
}
