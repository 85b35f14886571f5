import Testing
import WebSocketProtocol

@Suite("Close frames, RFC 6455 §5.5.1 and §7.4")
struct CloseFrameTests {
    static let allowed: [UInt16] =
        Array(1000...1003) + Array(1007...1014) + [3000, 3001, 3999, 4000, 4001, 4999]
    static let forbidden: [UInt16] = [
        0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 1999, 2000, 2999, 5000, 32_768, 65_535,
    ]

    private func payload(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)] + reason
    }

    @Test(arguments: Role.both, Self.allowed)
    func codeThatMayBeSentIsAccepted(_ sender: Role, _ code: UInt16) {
        #expect(CloseCode(rawValue: code).isAllowedOnWire)
        let reason = Array("weg 👋".utf8)
        expectObserves(
            [.close(code, reason: reason)], in: WireFrame(0x88, self.payload(code, reason), from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both, Self.forbidden)
    func codeThatMayNotBeSentIsRejected(_ sender: Role, _ code: UInt16) {
        #expect(!CloseCode(rawValue: code).isAllowedOnWire)
        expectObserves(
            [.violation(.invalidCloseCode)], in: WireFrame(0x88, self.payload(code), from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func closeFrameWithoutACodeIsAccepted(_ sender: Role) {
        expectObserves(
            [.close(nil, reason: [])], in: WireFrame(0x88, from: sender).bytes, by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func halfACodeIsRejected(_ sender: Role) {
        expectObserves(
            [.violation(.invalidCloseFrame)], in: WireFrame(0x88, [0x03], from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func longestReasonIsAccepted(_ sender: Role) {
        let reason = [UInt8](repeating: 0x61, count: 123)
        expectObserves(
            [.close(1000, reason: reason)], in: WireFrame(0x88, self.payload(1000, reason), from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both, TextTests.invalid.map(\.0) + TextTests.incomplete)
    func reasonThatIsNotTextIsRejected(_ sender: Role, _ reason: [UInt8]) {
        expectObserves(
            [.violation(.invalidUTF8)], in: WireFrame(0x88, self.payload(1000, reason), from: sender).bytes,
            by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func framesAfterACloseAreNotDecoded(_ sender: Role) {
        let bytes =
            WireFrame(0x01, "a", from: sender).bytes + WireFrame(0x88, self.payload(1001), from: sender).bytes
            + WireFrame(0x80, "b", from: sender).bytes + WireFrame(0xF7, "c", from: sender).bytes
        expectObserves(
            [.frame(.text, [0x61], starts: true), .close(1001, reason: [])], in: bytes, by: .receiving(from: sender))
    }
}
