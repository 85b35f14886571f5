import Testing
import WebSocketProtocol

@Suite("Rules of framing, RFC 6455 §5.2 to §5.6")
struct FrameRuleTests {
    private func refuses(
        _ frames: [WireFrame], from sender: Role, with rule: PeerViolation.Rule, after expected: [Observation] = [],
        limit: Int? = nil, deflate: PermessageDeflateParameters? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        // A valid frame after the violation is ignored.
        let bytes = (frames + [WireFrame(0x81, "later", from: sender)]).flatMap(\.bytes)
        expectObserves(
            expected + [.violation(rule)], in: bytes,
            by: .receiving(from: sender, limit: limit, deflate: deflate), sourceLocation: sourceLocation)
    }

    @Test(arguments: Role.both, [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70] as [UInt8])
    func reservedBitsWithoutExtensionAreRefused(_ sender: Role, _ bits: UInt8) {
        for opcode: UInt8 in [0, 1, 2, 8, 9, 10] {
            self.refuses([WireFrame(0x80 | bits | opcode, from: sender)], from: sender, with: .reservedBits)
        }
    }

    @Test(arguments: Role.both, [0x10, 0x20, 0x30, 0x50, 0x60, 0x70] as [UInt8])
    func otherReservedBitsUnderCompressionAreRejected(_ sender: Role, _ bits: UInt8) {
        for opcode: UInt8 in [0, 1, 2, 8, 9, 10] {
            self.refuses(
                [WireFrame(0x80 | bits | opcode, from: sender)], from: sender, with: .reservedBits,
                deflate: PermessageDeflateParameters())
        }
    }

    @Test(arguments: Role.both, [8, 9, 10] as [UInt8])
    func compressedControlFrameIsRejected(_ sender: Role, _ opcode: UInt8) {
        self.refuses(
            [WireFrame(0xC0 | opcode, from: sender)], from: sender, with: .reservedBits,
            deflate: PermessageDeflateParameters())
    }

    @Test(arguments: Role.both)
    func compressionBitOnAContinuationIsRejected(_ sender: Role) {
        let first = WireFrame(0x01, "a", from: sender)
        self.refuses(
            [first, WireFrame(0xC0, "b", from: sender)], from: sender, with: .reservedBits,
            after: [.frame(.text, [0x61], starts: true)], deflate: PermessageDeflateParameters())
    }

    @Test(arguments: Role.both, [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8])
    func reservedOpcodeIsRejected(_ sender: Role, _ opcode: UInt8) {
        self.refuses([WireFrame(0x80 | opcode, from: sender)], from: sender, with: .reservedOpcode)
        self.refuses([WireFrame(opcode, "abc", from: sender)], from: sender, with: .reservedOpcode)
    }

    @Test(arguments: [0x80, 0x81, 0x82, 0x88, 0x89, 0x8A] as [UInt8])
    func unmaskedFrameFromAClientIsRejected(_ first: UInt8) {
        var frame = WireFrame(first, "ab", from: .client)
        frame.key = nil
        self.refuses([frame], from: .client, with: .unmaskedClientFrame)
    }

    @Test(arguments: [0x80, 0x81, 0x82, 0x88, 0x89, 0x8A] as [UInt8])
    func maskedFrameFromAServerIsRejected(_ first: UInt8) {
        var frame = WireFrame(first, "ab", from: .server)
        frame.key = WireFrame.key
        self.refuses([frame], from: .server, with: .maskedServerFrame)
    }

    @Test(arguments: Role.both, [8, 9, 10] as [UInt8])
    func longControlFrameIsRejected(_ sender: Role, _ opcode: UInt8) {
        let payload = [UInt8](repeating: 0, count: 126)
        self.refuses([WireFrame(0x80 | opcode, payload, from: sender)], from: sender, with: .longControlFrame)
        self.refuses(
            [WireFrame(0x80 | opcode, payload, from: sender, lengthSize: 8)], from: sender, with: .longControlFrame)
    }

    @Test(arguments: Role.both)
    func controlFrameOf125BytesIsAccepted(_ sender: Role) {
        let payload = [UInt8](repeating: 7, count: 125)
        let bytes = WireFrame(0x89, payload, from: sender).bytes + WireFrame(0x8A, payload, from: sender).bytes
        expectObserves([.ping(payload), .pong(payload)], in: bytes, by: .receiving(from: sender))
    }

    @Test(arguments: Role.both, [8, 9, 10] as [UInt8])
    func fragmentedControlFrameIsRejected(_ sender: Role, _ opcode: UInt8) {
        self.refuses([WireFrame(opcode, "a", from: sender)], from: sender, with: .fragmentedControlFrame)
    }

    @Test(arguments: Role.both, [(0, 2), (1, 2), (125, 2), (0, 8), (125, 8), (126, 8), (65_535, 8)])
    func lengthInMoreBytesThanNeededIsRejected(_ sender: Role, _ length: (Int, Int)) {
        let payload = [UInt8](repeating: 0, count: length.0)
        self.refuses(
            [WireFrame(0x82, payload, from: sender, lengthSize: length.1)], from: sender, with: .lengthNotMinimal)
    }

    @Test(arguments: Role.both, [0x8000_0000_0000_0000, 0x8000_0000_0000_0005, .max] as [UInt64])
    func lengthWithItsHighestBitSetIsRejected(_ sender: Role, _ length: UInt64) {
        self.refuses([WireFrame(0x82, [0x61], from: sender, claimed: length)], from: sender, with: .lengthTooLarge)
    }

    @Test(arguments: Role.both)
    func longestLengthIsAccepted(_ sender: Role) {
        let frame = WireFrame(0x82, Array("abc".utf8), from: sender, claimed: UInt64(Int64.max))
        expectObserves(
            [.piece(.binary, Array("abc".utf8), starts: true)], in: frame.bytes, by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func lengthsOfFragmentsNeverOverflow(_ sender: Role) {
        self.refuses(
            [
                WireFrame(0x02, "abc", from: sender),
                WireFrame(0x00, [], from: sender, claimed: UInt64(Int64.max)),
            ], from: sender, with: .messageTooLong, after: [.frame(.binary, Array("abc".utf8), starts: true)])
    }

    @Test(arguments: Role.both, [125, 126, 127, 65_535, 65_536])
    func everyFormOfLengthIsReadAtItsEdges(_ sender: Role, _ count: Int) {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let bytes = WireFrame(0x82, payload, from: sender).bytes + WireFrame(0x81, "after", from: sender).bytes
        for feeding in [.whole, .byByte, .cut(seed: 1, longest: 4_000)] as [Feeding] {
            let seen = EngineDriver.observe(bytes, by: .receiving(from: sender), fed: feeding)
            #expect(seen == [.binary(payload), .text("after")], "fed \(feeding)")
        }
    }

    // MARK: Fragmentation, §5.4

    @Test(arguments: Role.both, [0x00, 0x80] as [UInt8])
    func continuationOfNothingIsRejected(_ sender: Role, _ first: UInt8) {
        self.refuses([WireFrame(first, "a", from: sender)], from: sender, with: .unexpectedContinuation)
        self.refuses(
            [WireFrame(0x81, "a", from: sender), WireFrame(first, "b", from: sender)], from: sender,
            with: .unexpectedContinuation, after: [.text("a")])
    }

    @Test(arguments: Role.both, [0x01, 0x02, 0x81, 0x82] as [UInt8])
    func newMessageInsideAnUnfinishedOneIsRejected(_ sender: Role, _ first: UInt8) {
        self.refuses(
            [WireFrame(0x01, "a", from: sender), WireFrame(first, "b", from: sender)], from: sender,
            with: .unfinishedMessage, after: [.frame(.text, [0x61], starts: true)])
    }

    @Test(arguments: Role.both)
    func controlFramesComeBetweenFragments(_ sender: Role) {
        let frames = [
            WireFrame(0x01, "Hel", from: sender), WireFrame(0x89, "p", from: sender),
            WireFrame(0x00, "l", from: sender),
            WireFrame(0x8A, "q", from: sender), WireFrame(0x80, "o", from: sender),
        ]
        expectObserves(
            [
                .frame(.text, Array("Hel".utf8), starts: true), .ping(Array("p".utf8)), .frame(.text, Array("l".utf8)),
                .pong(Array("q".utf8)), .frame(.text, Array("o".utf8), ends: true),
            ], in: frames.flatMap(\.bytes), by: .receiving(from: sender))
    }

    @Test(arguments: Role.both)
    func emptyFramesAreForwarded(_ sender: Role) {
        let frames = [
            WireFrame(0x01, from: sender), WireFrame(0x00, from: sender), WireFrame(0x00, "a", from: sender),
            WireFrame(0x80, from: sender), WireFrame(0x82, from: sender),
        ]
        expectObserves(
            [
                .frame(.text, [], starts: true), .frame(.text, []), .frame(.text, [0x61]),
                .frame(.text, [], ends: true),
                .binary([]),
            ], in: frames.flatMap(\.bytes), by: .receiving(from: sender))
    }

    // MARK: Message sizes

    @Test(arguments: Role.both)
    func messageOfExactlyTheLimitIsAccepted(_ sender: Role) {
        let frames = [WireFrame(0x02, "abc", from: sender), WireFrame(0x80, "de", from: sender)]
        expectObserves(
            [.frame(.binary, Array("abc".utf8), starts: true), .frame(.binary, Array("de".utf8), ends: true)],
            in: frames.flatMap(\.bytes), by: .receiving(from: sender, limit: 5))
    }

    @Test(arguments: Role.both)
    func longMessageIsRejectedAtItsHeader(_ sender: Role) {
        let header = WireFrame(0x82, [], from: sender, claimed: 1_000_001).bytes
        expectObserves([.violation(.messageTooLong)], in: header, by: .receiving(from: sender, limit: 1_000_000))
    }

    @Test(arguments: Role.both)
    func allFragmentsOfAMessageCountAgainstTheLimit(_ sender: Role) {
        self.refuses(
            [
                WireFrame(0x02, "abc", from: sender), WireFrame(0x00, "de", from: sender),
                WireFrame(0x80, "f", from: sender),
            ], from: sender, with: .messageTooLong,
            after: [.frame(.binary, Array("abc".utf8), starts: true), .frame(.binary, Array("de".utf8))], limit: 5)
    }

    @Test(arguments: Role.both)
    func everyMessageIsCountedAfresh(_ sender: Role) {
        let frame = WireFrame(0x81, "abcde", from: sender).bytes
        expectObserves(
            [.text("abcde"), .text("abcde"), .text("abcde")], in: frame + frame + frame,
            by: .receiving(from: sender, limit: 5))
    }

    @Test(arguments: Role.both)
    func limitOfZeroAcceptsEmptyMessagesOnly(_ sender: Role) {
        self.refuses(
            [WireFrame(0x82, from: sender), WireFrame(0x82, "a", from: sender)], from: sender, with: .messageTooLong,
            after: [.binary([])], limit: 0)
    }

    @Test(
        arguments: [
            (PeerViolation.Rule.reservedBits, 1002), (.reservedOpcode, 1002), (.unmaskedClientFrame, 1002),
            (.maskedServerFrame, 1002), (.lengthNotMinimal, 1002), (.lengthTooLarge, 1002),
            (.fragmentedControlFrame, 1002),
            (.longControlFrame, 1002), (.unexpectedContinuation, 1002), (.unfinishedMessage, 1002),
            (.invalidCloseFrame, 1002), (.invalidCloseCode, 1002), (.invalidUTF8, 1007), (.invalidCompressedData, 1007),
            (.messageTooLong, 1009),
        ] as [(PeerViolation.Rule, UInt16)])
    func ruleHasItsCloseCode(_ rule: PeerViolation.Rule, _ code: UInt16) {
        #expect(PeerViolation(rule).closeCode.rawValue == code)
    }
}
