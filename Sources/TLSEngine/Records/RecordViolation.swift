/// A rule of the record protocol that a peer broke after the handshake.
package enum RecordViolation: Error, Equatable, Sendable {
    /// A record in the clear.
    case unexpectedRecord(type: UInt8)
    case recordTooLong
    /// Changed on the way, out of order, or not of this connection.
    case badRecordMAC
    case noContentType
    case unexpectedContent(type: UInt8)
    /// An alert or handshake message of no bytes, or an alert that is not exactly one (RFC 8446 §5.1).
    case emptyMessage
    case notOneAlert
    /// Something else between the parts of a message.
    case interruptedMessage
    case unexpectedMessage(type: UInt8)
    case malformedKeyUpdate
    case invalidKeyUpdateRequest(UInt8)
    /// More behind a KeyUpdate in its record, though it is still under the old key (RFC 8446 §5.1).
    case messageAcrossKeyChange
    /// Records without data, one after the other, more than anybody needs.
    case nothingButOverhead

    /// The AlertDescription that tells the peer (RFC 8446 §6).
    package var alert: UInt8 {
        switch self {
        case .unexpectedRecord, .noContentType, .unexpectedContent, .emptyMessage, .notOneAlert, .interruptedMessage,
            .unexpectedMessage, .messageAcrossKeyChange, .nothingButOverhead:
            10
        case .badRecordMAC: 20
        case .recordTooLong: 22
        case .invalidKeyUpdateRequest: 47
        case .malformedKeyUpdate: 50
        }
    }

    var words: String {
        switch self {
        case .unexpectedRecord(let type): "a record of type \(type) came unprotected after the handshake"
        case .recordTooLong: "a record is longer than its 2^14 bytes of content allow"
        case .badRecordMAC: "bad record mac: a record was changed on the way or is out of order"
        case .noContentType: "a record holds nothing but padding"
        case .unexpectedContent(let type): "a record holds content of the unknown type \(type)"
        case .emptyMessage: "a record of alerts or handshake messages is empty"
        case .notOneAlert: "a record does not hold exactly one alert"
        case .interruptedMessage: "a handshake message was interrupted by something else"
        case .unexpectedMessage(let type): "a handshake message of type \(type) came after the handshake"
        case .malformedKeyUpdate: "a key update is not one byte long"
        case .invalidKeyUpdateRequest(let value): "a key update asks for \(value), neither 0 nor 1"
        case .messageAcrossKeyChange: "a key update is not the last of its record"
        case .nothingButOverhead: "too many records came that hold no data"
        }
    }
}
