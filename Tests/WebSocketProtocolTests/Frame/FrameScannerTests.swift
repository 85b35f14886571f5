import ByteKernels
import Testing
import WebSocketProtocol

@Suite("Scanning frames that are forwarded unchanged, RFC 6455 §5")
struct FrameScannerTests {
    private func expect(
        _ expected: [Observation], forwarding forwarded: [UInt8]? = nil, of bytes: [UInt8], by scanner: FrameScanner,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for feeding in Feeding.usual {
            let driver = ScannerDriver.observe(bytes, by: scanner, fed: feeding)
            #expect(driver.seen == expected, "fed \(feeding)", sourceLocation: sourceLocation)
            if let forwarded {
                #expect(driver.forwarded == forwarded, "fed \(feeding)", sourceLocation: sourceLocation)
            }
        }
    }

    private func frames(from sender: Role) -> [WireFrame] {
        [
            WireFrame(0x01, "Hel", from: sender), WireFrame(0x89, "p", from: sender), WireFrame(0x00, from: sender),
            WireFrame(0x80, "lo", from: sender), WireFrame(0x8A, from: sender), WireFrame(0x82, from: sender),
            WireFrame(0x82, [UInt8](repeating: 0xFF, count: 200), from: sender),
            WireFrame(0x88, [0x03, 0xE8, 0x6F, 0x6B], from: sender),
        ]
    }

    @Test(arguments: Role.both)
    func everyFrameIsFoundAndEveryByteForwarded(_ sender: Role) {
        let bytes = self.frames(from: sender).flatMap(\.bytes)
        self.expect(
            [
                .frame(.text, Array("Hel".utf8), starts: true), .ping([0x70]), .frame(.text, []),
                .frame(.text, Array("lo".utf8), ends: true), .pong([]), .binary([]),
                .binary([UInt8](repeating: 0xFF, count: 200)), .close(1000, reason: [0x6F, 0x6B]),
            ], forwarding: bytes, of: bytes + WireFrame(0x81, "later", from: sender).bytes,
            by: FrameScanner(from: sender))
    }

    @Test(arguments: Role.both)
    func boundariesOfFramesAreKnown(_ sender: Role) {
        var ends: [Int] = []
        for frame in self.frames(from: sender) { ends.append((ends.last ?? 0) + frame.bytes.count) }
        let bytes = self.frames(from: sender).flatMap(\.bytes)
        for feeding in Feeding.usual {
            let driver = ScannerDriver.observe(bytes, by: FrameScanner(from: sender), fed: feeding)
            #expect(driver.boundaries == ends, "fed \(feeding)")
        }
    }

    @Test(arguments: Role.both)
    func scannerKeepsAtMostAControlFrameBack(_ sender: Role) {
        let bytes =
            WireFrame(0x89, [UInt8](repeating: 1, count: 125), from: sender).bytes
            + WireFrame(0x82, [UInt8](repeating: 1, count: 70_000), from: sender).bytes
        #expect(ScannerDriver.observe(bytes, by: FrameScanner(from: sender), fed: .byByte).mostKept < 139)
    }

    @Test func piecesOfAFrameAreMarked() {
        var scanner = FrameScanner(from: .server, reservedBits: .compression)
        let bytes: [UInt8] = [0x41, 0x03, 0x01, 0x02, 0x03, 0x80, 0x02, 0x04]
        var position = 0
        let pieces = bytes.withRawSpan { span in
            [scanner.scan(span, at: &position), scanner.scan(span, at: &position), scanner.scan(span, at: &position)]
        }
        let first = FramePiece(
            range: 0..<5, headerSize: 2, opcode: .text, kind: .text, isCompressed: true, isFinal: false, endsFrame: true
        )
        let second = FramePiece(
            range: 5..<8, headerSize: 2, opcode: .continuation, kind: .text, isCompressed: true, isFinal: true,
            endsFrame: false)
        #expect(pieces == [.data(first), .data(second), nil])
        #expect(first.startsMessage && first.endsFrame && !first.endsMessage && first.payloadRange == 2..<5)
        #expect(second.startsFrame && !second.startsMessage && !second.endsMessage)
        #expect(position == 8)
        #expect(!scanner.isAtFrameBoundary)
        #expect(!scanner.isInsideMessage, "its last frame has begun")
    }

    @Test func headerIsReportedBeforeItsPayload() {
        var scanner = FrameScanner(from: .server)
        var position = 0
        let bytes: [UInt8] = [0x82, 0x05]
        let found = bytes.withRawSpan { scanner.scan($0, at: &position) }
        let piece = FramePiece(
            range: 0..<2, headerSize: 2, opcode: .binary, kind: .binary, isCompressed: false, isFinal: true,
            endsFrame: false)
        #expect(found == .data(piece))
        #expect(!scanner.isAtFrameBoundary)
    }

    @Test(
        arguments: Role.both,
        [
            (0x40, ReservedBits.none), (0x20, .none), (0x10, .none), (0x20, .compression),
            (0x10, [.compression, .second]),
            (0x60, .compression), (0x20, [.compression, .third]),
        ] as [(UInt8, ReservedBits)])
    func reservedBitsThatWereNotAgreedAreRejected(_ sender: Role, _ bits: (UInt8, ReservedBits)) {
        for opcode: UInt8 in [0, 1, 2, 8, 9, 10] {
            self.expect(
                [.violation(.reservedBits)], forwarding: [], of: WireFrame(0x80 | bits.0 | opcode, from: sender).bytes,
                by: FrameScanner(from: sender, reservedBits: bits.1))
        }
    }

    @Test(arguments: Role.both)
    func agreedReservedBitsPass(_ sender: Role) {
        let all: ReservedBits = [.compression, .second, .third]
        let bytes =
            WireFrame(0x71, "a", from: sender).bytes + WireFrame(0x30, "b", from: sender).bytes
            + WireFrame(0xB9, from: sender).bytes + WireFrame(0x80, from: sender).bytes
        self.expect(
            [
                .frame(.text, [0x61], starts: true), .frame(.text, [0x62]), .ping([]), .frame(.text, [], ends: true),
            ], forwarding: bytes, of: bytes, by: FrameScanner(from: sender, reservedBits: all))
        for first: UInt8 in [0xC0, 0xC8, 0xC9, 0xCA] {
            self.expect(
                [.frame(.text, [0x61], starts: true), .violation(.reservedBits)],
                of: WireFrame(0x01, "a", from: sender).bytes + WireFrame(first, from: sender).bytes,
                by: FrameScanner(from: sender, reservedBits: all))
        }
    }

    @Test(arguments: Role.both)
    func longMessageIsRejectedAtItsHeader(_ sender: Role) {
        let limited = FrameScanner(from: sender, maximumMessageSize: 5)
        self.expect(
            [.violation(.messageTooLong)], of: WireFrame(0x82, [], from: sender, claimed: 6).bytes, by: limited)
        let fragments = WireFrame(0x02, "abc", from: sender).bytes + WireFrame(0x00, "de", from: sender).bytes
        let before: [Observation] = [
            .frame(.binary, Array("abc".utf8), starts: true), .frame(.binary, Array("de".utf8)),
        ]
        self.expect(
            before + [.violation(.messageTooLong)], forwarding: fragments,
            of: fragments + WireFrame(0x80, "f", from: sender).bytes, by: limited)
        self.expect(
            before + [.frame(.binary, [], ends: true), .binary(Array("again".utf8))],
            of: fragments + WireFrame(0x80, from: sender).bytes + WireFrame(0x82, "again", from: sender).bytes,
            by: limited)
    }

    @Test(arguments: Role.both)
    func longestLengthsAreAccepted(_ sender: Role) {
        let longest = WireFrame(0x02, Array("abc".utf8), from: sender, claimed: UInt64(Int64.max))
        self.expect(
            [.piece(.binary, Array("abc".utf8), starts: true)], of: longest.bytes, by: FrameScanner(from: sender))
        let overflowing =
            WireFrame(0x02, "a", from: sender).bytes
            + WireFrame(0x80, [], from: sender, claimed: UInt64(Int64.max)).bytes
        self.expect(
            [.frame(.binary, [0x61], starts: true), .violation(.messageTooLong)], of: overflowing,
            by: FrameScanner(from: sender))
    }

    @Test(arguments: Role.both)
    func forwardedTextIsNotChecked(_ sender: Role) {
        let bytes = WireFrame(0x81, [0xFF, 0xC3], from: sender).bytes
        self.expect(
            [.data(.text, [0xFF, 0xC3], startsMessage: true, endsFrame: true, endsMessage: true)], forwarding: bytes,
            of: bytes, by: FrameScanner(from: sender))
    }
}
