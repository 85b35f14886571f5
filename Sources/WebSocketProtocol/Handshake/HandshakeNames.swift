import ByteKernels

/// The names of the opening handshake's own fields, which are too long to be kept within a `String`: found here as they
/// are mostly written, they cost no memory.
enum HandshakeNames {
    /// - Returns: the name with exactly these bytes; `nil` for others.
    static func find(_ bytes: RawSpan) -> String? {
        let name: String
        // Each has a length of its own.
        switch bytes.byteCount {
        case 17: name = "Sec-WebSocket-Key"
        case 20: name = "Sec-WebSocket-Accept"
        case 21: name = "Sec-WebSocket-Version"
        case 22: name = "Sec-WebSocket-Protocol"
        case 24: name = "Sec-WebSocket-Extensions"
        default: return nil
        }
        let written = name.utf8.span
        for offset in written.indices where bytes[byte: offset] != written[offset] { return nil }
        return name
    }
}
