import WebSocketProtocol

/// The opening handshake of a WebSocket as it was on the wire, in one piece of memory; credentials are left out.
package struct HandshakeFacts: Sendable, Hashable {
    /// One head: its first line, and its fields.
    package struct Head: Sendable, Hashable {
        package let firstLine: String
        package let fields: [Field]
    }

    package struct Field: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    /// Bytes kept of both heads together; what is longer is cut.
    static let limit = 8 << 10
    /// What stands for the value of a field that must not be shown.
    static let hidden = "(hidden)"

    private let text: [UInt8]

    init(_ request: RequestHead, response: [UInt8]) {
        var text = Array("\(request.method) \(request.target) HTTP/1.1\r\n".utf8)
        for field in request.fields.all {
            let value = Self.isSecret(field.name) ? Self.hidden : field.value
            text += Array("\(field.name): \(value)\r\n".utf8)
        }
        text += Array("\r\n".utf8) + response
        self.text = Array(text.prefix(Self.limit))
    }

    private static func isSecret(_ name: String) -> Bool {
        ["authorization", "proxy-authorization", "cookie", "sec-websocket-key"].contains(name.lowercased())
    }

    /// What the client asked, and what the server answered.
    package var heads: (request: Head, response: Head) {
        let lines = self.text.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            line.last == 0x0D ? line.dropLast() : line
        }
        let end = lines.firstIndex(where: \.isEmpty) ?? lines.count
        return (Self.head(lines[..<end]), Self.head(lines[min(end + 1, lines.count)...]))
    }

    private static func head(_ lines: ArraySlice<ArraySlice<UInt8>>) -> Head {
        let fields = lines.dropFirst().compactMap { line -> Field? in
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let value = line[(colon + 1)...].drop { $0 == 0x20 }
            return Field(
                name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
        }
        return Head(firstLine: String(decoding: lines.first ?? [], as: UTF8.self), fields: fields)
    }
}
