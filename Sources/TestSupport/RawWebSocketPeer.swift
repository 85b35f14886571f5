/// A WebSocket peer that sends arbitrary frames, valid or not, with its own encoder and decoder.
package final class RawWebSocketPeer {
    package struct Frame: Equatable {
        package let opcode: UInt8
        package let isFinal: Bool
        package let isMasked: Bool
        package let payload: [UInt8]

        package init(opcode: UInt8, isFinal: Bool, isMasked: Bool, payload: [UInt8]) {
            self.opcode = opcode
            self.isFinal = isFinal
            self.isMasked = isMasked
            self.payload = payload
        }
    }

    /// The request of RFC 6455 §1.3.
    package static let request = RawWebSocketPeer.request(to: "/chat")

    /// The same for another target.
    package static func request(to target: String) -> String {
        """
        GET \(target) HTTP/1.1\r
        Host: server.example.com\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
        Origin: http://example.com\r
        Sec-WebSocket-Protocol: chat, superchat\r
        Sec-WebSocket-Version: 13\r
        \r

        """
    }

    package let peer: ScriptedPeer
    private let isClient: Bool
    /// Bytes that were received together with the handshake's head.
    package var leftover: [UInt8] = [] {
        didSet { self.decoded = Decoded(takeCount: self.peer.takeCount) }
    }
    /// Whether the handshake's head was taken from the received bytes.
    package private(set) var hasHead = false
    private var decoded = Decoded()

    /// The frames at the beginning of the received bytes.
    private struct Decoded {
        var takeCount = 0
        var frames: [Frame] = []
        /// Bytes of `frames`.
        var byteCount = 0
        /// Bytes that were there at the last decoding.
        var seenCount = 0
    }

    package init(_ peer: ScriptedPeer, isClient: Bool) {
        self.peer = peer
        self.isClient = isClient
    }

    /// The 101 response to a request.
    /// - Parameter accept: returns the value of Sec-WebSocket-Accept for a key.
    package static func response(to request: [UInt8], accept: (String) -> String) -> [UInt8] {
        let lines = String(decoding: request, as: UTF8.self).split(separator: "\r\n")
        let key = lines.first { $0.lowercased().hasPrefix("sec-websocket-key:") }?.split(separator: " ").last ?? ""
        return Array(
            """
            HTTP/1.1 101 Switching Protocols\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Accept: \(accept(String(key)))\r
            \r

            """.utf8)
    }

    /// An encoded frame; masked if the peer is a client.
    package func encoded(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        let flag: UInt8 = self.isClient ? 0x80 : 0
        switch payload.count {
        case ..<126: bytes.append(flag | UInt8(payload.count))
        case ..<65_536: bytes += [flag | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: bytes += [flag | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        guard self.isClient else { return bytes + payload }
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        return bytes + key + Self.masked(payload[...], key)
    }

    package func send(_ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true) {
        self.peer.send(self.encoded(opcode, payload, isFinal: isFinal))
    }

    package func send(_ opcode: UInt8, _ text: String) {
        self.send(opcode, Array(text.utf8))
    }

    /// Takes the handshake's head from the received bytes if it is complete. Frames follow it.
    /// - Returns: `hasHead`.
    package func readHead() -> Bool {
        let bytes = self.peer.received
        guard !self.hasHead, bytes.count >= 4,
            let end = (0...(bytes.count - 4)).first(where: { bytes[$0...].starts(with: [13, 10, 13, 10]) })
        else { return self.hasHead }
        self.leftover = Array(self.peer.takeReceived()[(end + 4)...])
        self.hasHead = true
        return true
    }

    /// All complete frames received so far. Each is decoded once, because tests ask for them in every turn.
    package var frames: [Frame] {
        if self.decoded.takeCount != self.peer.takeCount {
            self.decoded = Decoded(takeCount: self.peer.takeCount)
        }
        let total = self.leftover.count + self.peer.received.count
        guard total > self.decoded.seenCount else { return self.decoded.frames }
        var bytes = (self.leftover + self.peer.received).dropFirst(self.decoded.byteCount)
        while let frame = Self.takeFrame(&bytes) { self.decoded.frames.append(frame) }
        self.decoded.byteCount = bytes.startIndex
        self.decoded.seenCount = total
        return self.decoded.frames
    }

    /// Apart from the product's kernel on purpose: a peer that masked with it would not see its errors.
    private static func masked(_ payload: ArraySlice<UInt8>, _ key: [UInt8]) -> [UInt8] {
        guard key != [0, 0, 0, 0] else { return Array(payload) }
        var bytes = Array(payload)
        var offset = 0
        while offset < bytes.count {  // `for` costs three times as much in a debug build.
            bytes[offset] ^= key[offset & 3]
            offset += 1
        }
        return bytes
    }

    private static func takeFrame(_ bytes: inout ArraySlice<UInt8>) -> Frame? {
        var rest = bytes
        guard let first = rest.popFirst(), let second = rest.popFirst() else { return nil }
        var count = Int(second & 0x7F)
        let extended = count == 126 ? 2 : count == 127 ? 8 : 0
        guard rest.count >= extended else { return nil }
        if extended > 0 { count = rest.prefix(extended).reduce(0) { $0 << 8 | Int($1) } }
        rest = rest.dropFirst(extended)
        let isMasked = second & 0x80 != 0
        guard rest.count >= count + (isMasked ? 4 : 0) else { return nil }
        let key = isMasked ? Array(rest.prefix(4)) : [0, 0, 0, 0]
        if isMasked { rest = rest.dropFirst(4) }
        let payload = isMasked ? Self.masked(rest.prefix(count), key) : Array(rest.prefix(count))
        bytes = rest.dropFirst(count)
        return Frame(opcode: first & 0x0F, isFinal: first & 0x80 != 0, isMasked: isMasked, payload: payload)
    }

    /// The payload of the received Close frame, if any.
    package var close: [UInt8]? {
        self.frames.first { $0.opcode == 8 }?.payload
    }
}
