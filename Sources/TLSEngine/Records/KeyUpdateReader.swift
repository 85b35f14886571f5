/// Handshake messages of a client whose handshake is over. Only KeyUpdate is possible, since we ask for nothing
/// (RFC 8446 §4.6); it may come in parts, but must end its record.
struct KeyUpdateReader: Equatable {
    enum Request: Equatable {
        case none
        /// We are to change our key too, before we send more data.
        case answer
    }

    private static let messageType: UInt8 = 24
    private static let length = 5

    private var count = 0

    /// Whether part of a message came, between which and the rest nothing else may come.
    var isAmidMessage: Bool { self.count > 0 }

    /// Takes the content of one record.
    /// - Returns: `nil` while the message is incomplete.
    mutating func take(_ content: RawSpan) throws(RecordViolation) -> Request? {
        guard content.byteCount > 0 else { throw .emptyMessage }
        for offset in 0..<content.byteCount {
            let byte = content[byte: offset]
            self.count += 1
            guard self.count == Self.length else {
                try Self.judge(byte, at: self.count - 1)
                continue
            }
            guard offset == content.byteCount - 1 else { throw .messageAcrossKeyChange }
            self.count = 0
            return try Self.request(byte)
        }
        return nil
    }

    private static func judge(_ byte: UInt8, at index: Int) throws(RecordViolation) {
        switch index {
        case 0: if byte != Self.messageType { throw .unexpectedMessage(type: byte) }
        case 3: if byte != 1 { throw .malformedKeyUpdate }
        default: if byte != 0 { throw .malformedKeyUpdate }
        }
    }

    private static func request(_ byte: UInt8) throws(RecordViolation) -> Request {
        switch byte {
        case 0: .none
        case 1: .answer
        default: throw .invalidKeyUpdateRequest(byte)
        }
    }
}
