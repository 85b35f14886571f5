import ByteKernels
import Testing
import WebSocketProtocol

@Suite("Examples, RFC 6455 §5.7")
struct FrameExampleTests {
    private static let binary256 = (0..<256).map { UInt8(truncatingIfNeeded: $0) }
    private static let binary64K = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    @Test func unmaskedTextMessageIsRead() {
        expectObserves(
            [.text("Hello")], in: [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], by: .receiving(from: .server))
    }

    @Test func maskedTextMessageIsRead() {
        expectObserves(
            [.text("Hello")], in: [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58],
            by: .receiving(from: .client))
    }

    @Test func fragmentedUnmaskedTextMessageIsRead() {
        expectObserves(
            [.frame(.text, Array("Hel".utf8), starts: true), .frame(.text, Array("lo".utf8), ends: true)],
            in: [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F], by: .receiving(from: .server))
    }

    @Test func unmaskedPingAndItsMaskedPongAreRead() {
        expectObserves(
            [.ping(Array("Hello".utf8))], in: [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], by: .receiving(from: .server))
        expectObserves(
            [.pong(Array("Hello".utf8))], in: [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58],
            by: .receiving(from: .client))
    }

    @Test func binaryMessageOf256BytesIsRead() {
        expectObserves(
            [.binary(Self.binary256)], in: [0x82, 0x7E, 0x01, 0x00] + Self.binary256, by: .receiving(from: .server))
    }

    @Test func binaryMessageOf64KiBIsRead() {
        let bytes = [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + Self.binary64K
        for feeding in [.whole, .byByte, .cut(seed: 1, longest: 9_000)] as [Feeding] {
            let seen = EngineDriver.observe(bytes, by: .receiving(from: .server), fed: feeding)
            #expect(seen == [.binary(Self.binary64K)], "fed \(feeding)")
        }
    }

    // MARK: Writing

    private func written(
        _ role: Role, _ opcode: Opcode, isFinal: Bool = true, isCompressed: Bool = false, _ payload: [UInt8]
    ) -> [UInt8] {
        let engine = WebSocketEngine(role: role, maximumMessageSize: nil)
        let keys = MaskingKeys { (0x3D21_FA37, []) }
        let size = engine.frameSize(payloadCount: payload.count)
        // One more byte of space, which must stay unchanged.
        var target = [UInt8](repeating: 0xEE, count: size + 1)
        let count = target.withMutableRawSpan { target in
            payload.withRawSpan {
                engine.encodeFrame(opcode, isFinal: isFinal, isCompressed: isCompressed, $0, keys: keys, into: &target)
            }
        }
        #expect(count == size)
        #expect(target.popLast() == 0xEE)
        return target
    }

    @Test func examplesOfTheRFCAreWritten() {
        let hello = Array("Hello".utf8)
        #expect(self.written(.server, .text, hello) == [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
        #expect(
            self.written(.client, .text, hello)
                == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(self.written(.server, .text, isFinal: false, Array("Hel".utf8)) == [0x01, 0x03, 0x48, 0x65, 0x6C])
        #expect(self.written(.server, .continuation, Array("lo".utf8)) == [0x80, 0x02, 0x6C, 0x6F])
        #expect(self.written(.server, .ping, hello) == [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
        #expect(
            self.written(.client, .pong, hello)
                == [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(self.written(.server, .binary, Self.binary256) == [0x82, 0x7E, 0x01, 0x00] + Self.binary256)
        #expect(
            self.written(.server, .binary, Self.binary64K) == [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + Self.binary64K)
    }

    @Test(
        arguments: [
            (0, [0x82, 0x00]), (125, [0x82, 0x7D]), (126, [0x82, 0x7E, 0x00, 0x7E]),
            (65_535, [0x82, 0x7E, 0xFF, 0xFF]),
            (65_536, [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] as [(Int, [UInt8])])
    func shortestLengthThatFitsIsWritten(_ count: Int, _ header: [UInt8]) {
        let payload = [UInt8](repeating: 1, count: count)
        #expect(self.written(.server, .binary, payload) == header + payload)
        let masked = self.written(.client, .binary, payload)
        #expect(Array(masked.prefix(header.count)) == [header[0], header[1] | 0x80] + header.dropFirst(2))
        #expect(masked.count == header.count + 4 + count)
    }

    @Test func compressedMessageHasRSV1() {
        #expect(self.written(.server, .text, isCompressed: true, [0x00]) == [0xC1, 0x01, 0x00])
    }

    @Test func everyFrameHasAFreshMaskingKey() {
        let engine = WebSocketEngine(role: .client, maximumMessageSize: nil)
        var next: UInt32 = 0
        let keys = MaskingKeys {
            next += 2
            return (next - 1, [next])
        }
        var seen: [[UInt8]] = []
        for _ in 0..<5 {
            var target = [UInt8](repeating: 0, count: 6)
            target.withMutableRawSpan { target in
                [UInt8]().withRawSpan { _ = engine.encodeFrame(.ping, isFinal: true, $0, keys: keys, into: &target) }
            }
            seen.append(target)
        }
        #expect(seen.map { $0[2] } == [1, 2, 3, 4, 5])
    }

    @Test func idleDecoderIsSmall() {
        #expect(MemoryLayout<WebSocketEngine>.size <= 128)
        #expect(MemoryLayout<FrameHeader>.size <= 32)
    }
}
