import HTTP2Engine
import Testing

/// Frames as RFC 9113 §4.1 lays them out, written by hand: a peer made of them may break any rule.
enum Frame {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    static let settings = Self.frame(4, 0, 0, [])
    static let settingsAnswer = Self.frame(4, 1, 0, [])

    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = UInt32(payload.count)
        return [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags]
            + Self.four(stream) + payload
    }

    static func zeros(_ count: Int) -> [UInt8] { Array(repeating: 0, count: count) }

    static func four(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 0xFF) } }

    /// A literal field without indexing and without Huffman coding (RFC 7541 §6.2.2).
    static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0] + Self.text(name) + Self.text(value)
    }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var rest = bytes.count - 127
        var length: [UInt8] = [127]
        while rest >= 128 {
            length.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }
}

/// One engine, and all that it said and had to write.
final class Endpoint {
    let connection: HTTP2Connection
    var events: [HTTP2Event] = []
    /// Bodies in their order, by stream.
    var bodies: [HTTP2StreamID: [UInt8]] = [:]
    /// Whether received bytes are consumed, which reopens the stream's window, at once.
    var consumes = true

    init(_ role: HTTP2Role, _ settings: HTTP2Settings = HTTP2Settings()) throws {
        self.connection = try HTTP2Connection(role, settings: settings)
    }

    func receive(_ bytes: [UInt8]) {
        var offset = 0
        while let event = self.connection.nextEvent(in: bytes.span.bytes, from: &offset) {
            if case .data(let stream, let range) = event {
                self.bodies[stream, default: []] += bytes[range]
                if self.consumes { self.connection.consume(stream, range.count) }
            } else {
                self.events.append(event)
            }
        }
    }

    /// The pending output, at most `limit` frames.
    func output(limit: Int = .max) -> [UInt8] {
        var output: [UInt8] = []
        var frames = 0
        self.connection.write { piece in
            for index in 0..<piece.byteCount { output.append(piece.unsafeLoad(index)) }
            frames += 1
            return frames < limit
        }
        return output
    }

    var failure: HTTP2Failure? {
        for case .failed(let failure) in self.events { return failure }
        return nil
    }

    /// Its pending output ends with a GOAWAY (RFC 9113 §6.8).
    func expectGoAway(_ code: UInt32, sourceLocation: SourceLocation = #_sourceLocation) {
        var frames: [(type: UInt8, payload: ArraySlice<UInt8>)] = []
        var rest = self.output()[...]
        while rest.count >= 9 {
            let header = Array(rest.prefix(9))
            let length = header[0..<3].reduce(0) { $0 << 8 | Int($1) }
            frames.append((header[3], rest.dropFirst(9).prefix(length)))
            rest = rest.dropFirst(9 + length)
        }
        let last = frames.last
        #expect(last?.type == 7, sourceLocation: sourceLocation)
        #expect(last?.payload.dropFirst(4).prefix(4) == Frame.four(code)[...], sourceLocation: sourceLocation)
    }

    var heads: [HTTP2FieldBlock] {
        self.events.compactMap { if case .head(_, let fields, _) = $0 { fields } else { nil } }
    }
}

extension RawSpan {
    fileprivate func unsafeLoad(_ index: Int) -> UInt8 { unsafe self.unsafeLoad(fromByteOffset: index, as: UInt8.self) }
}

/// A client and a server whose bytes reach each other.
struct Pair {
    let client: Endpoint
    let server: Endpoint

    init(client: HTTP2Settings = HTTP2Settings(), server: HTTP2Settings = HTTP2Settings()) throws {
        self.client = try Endpoint(.client, client)
        self.server = try Endpoint(.server, server)
    }

    /// Moves bytes until neither side has anything to write, in pieces of at most `split` bytes.
    func exchange(split: Int = .max) {
        while true {
            let there = self.client.output()
            let back = self.server.output()
            Self.pieces(there, split).forEach(self.server.receive)
            Self.pieces(back, split).forEach(self.client.receive)
            self.server.receive([])
            self.client.receive([])
            guard !there.isEmpty || !back.isEmpty else { return }
        }
    }

    private static func pieces(_ bytes: [UInt8], _ split: Int) -> [[UInt8]] {
        guard split < bytes.count else { return bytes.isEmpty ? [] : [bytes] }
        return stride(from: 0, to: bytes.count, by: split).map { Array(bytes[$0..<min($0 + split, bytes.count)]) }
    }

    static let get = HTTP2FieldBlock([
        (":method", "GET"), (":scheme", "https"), (":authority", "server.example"), (":path", "/"),
    ])
    static let post = HTTP2FieldBlock([
        (":method", "POST"), (":scheme", "https"), (":authority", "server.example"), (":path", "/"),
    ])
    static let ok = HTTP2FieldBlock([(":status", "200"), ("content-type", "text/plain")])
}
