/// The header of a protected record, TLSCiphertext (RFC 8446 §5.2).
enum RecordHeader {
    /// - Returns: the length of the record at the start of `bytes`, header included; `nil` until the header is
    ///   complete. The version is ignored, as §5.1 requires; the AEAD covers it.
    /// - Throws: `.unexpectedRecord` for an unprotected record, ChangeCipherSpec included (§5: not allowed after the
    ///   peer's Finished); `.recordTooLong` above 2^14 + 256 bytes; `.badRecordMAC` if it is shorter than a tag.
    static func recordLength(_ bytes: RawSpan) throws(RecordViolation) -> Int? {
        guard bytes.byteCount >= RecordSize.header else { return nil }
        guard bytes[byte: 0] == ContentType.applicationData.rawValue else {
            throw .unexpectedRecord(type: bytes[byte: 0])
        }
        let length = Int(bytes[byte: 3]) << 8 | Int(bytes[byte: 4])
        guard length <= RecordSize.fragment else { throw .recordTooLong }
        guard length >= RecordSize.tag else { throw .badRecordMAC }
        return RecordSize.header + length
    }
}

/// The ContentType of a record (RFC 8446 §5.1).
package enum ContentType: UInt8, Sendable {
    case alert = 21
    case handshake = 22
    case applicationData = 23
}

/// A decrypted record, TLSInnerPlaintext: content, its type, and zero padding (RFC 8446 §5.4).
struct InnerPlaintext: Equatable {
    let type: UInt8
    /// Length of the content, which comes first.
    let count: Int

    /// - Parameter bytes: content, type and padding.
    /// - Throws: `.recordTooLong` above 2^14 + 1 bytes, padding included; `.noContentType` if all bytes are zero.
    init(_ bytes: RawSpan) throws(RecordViolation) {
        guard bytes.byteCount <= RecordSize.innerPlaintext else { throw .recordTooLong }
        var last = bytes.byteCount - 1
        while last >= 0, bytes[byte: last] == 0 { last -= 1 }
        guard last >= 0 else { throw .noContentType }
        self.type = bytes[byte: last]
        self.count = last
    }
}

/// Sizes and limits of TLS 1.3 records in bytes (RFC 8446 §5.1 and §5.2).
enum RecordSize {
    static let header = 5
    /// Tag length of all AEADs of `RecordSuite`.
    static let tag = 16
    static let content = 1 << 14
    /// Largest content with its type and padding (§5.4).
    static let innerPlaintext = (1 << 14) + 1
    /// Largest record without its header.
    static let fragment = (1 << 14) + 256
}

/// The TLS 1.3 cipher suites that the compact record layer supports (RFC 8446 §B.4).
package enum RecordSuite: UInt16, Sendable, CaseIterable {
    case aes128GCM = 0x1301
    case aes256GCM = 0x1302
    case chaCha20Poly1305 = 0x1303

    /// Length of the AEAD's key in bytes.
    var keyLength: Int {
        switch self {
        case .aes128GCM: 16
        case .aes256GCM, .chaCha20Poly1305: 32
        }
    }

    /// Length of traffic secrets in bytes, the output length of the suite's hash.
    var secretLength: Int {
        switch self {
        case .aes128GCM, .chaCha20Poly1305: 32
        case .aes256GCM: 48
        }
    }

    var name: String {
        switch self {
        case .aes128GCM: "TLS_AES_128_GCM_SHA256"
        case .aes256GCM: "TLS_AES_256_GCM_SHA384"
        case .chaCha20Poly1305: "TLS_CHACHA20_POLY1305_SHA256"
        }
    }
}

package enum RecordEvent: Equatable, Sendable {
    /// `count` bytes, at least 1, were written to the front of the caller's buffer.
    case plaintext(count: Int)
    /// close_notify was received.
    case closed
    /// A fatal alert was received; its AlertDescription.
    case alert(UInt8)
    case failed(RecordError)
}

/// Why the compact record layer failed.
package enum RecordError: Error, Equatable, Sendable {
    case peer(RecordViolation)
    /// OpenSSL lacks memory.
    case engine
}

/// A rule of the record protocol that the peer violated after the handshake.
package enum RecordViolation: Error, Equatable, Sendable {
    /// An unprotected record.
    case unexpectedRecord(type: UInt8)
    case recordTooLong
    /// The record was modified, reordered, or belongs to another connection.
    case badRecordMAC
    case noContentType
    case unexpectedContent(type: UInt8)
    /// An alert or handshake record without content (RFC 8446 §5.1).
    case emptyMessage
    /// An alert record that does not contain exactly one alert (RFC 8446 §5.1).
    case notOneAlert
    /// Another record between the fragments of a handshake message.
    case interruptedMessage
    case unexpectedMessage(type: UInt8)
    case malformedKeyUpdate
    case invalidKeyUpdateRequest(UInt8)
    /// A KeyUpdate is not the last message of its record (RFC 8446 §5.1).
    case messageAcrossKeyChange
    case tooManyNonDataRecords

    /// The AlertDescription to send (RFC 8446 §6).
    package var alert: UInt8 {
        switch self {
        case .unexpectedRecord, .noContentType, .unexpectedContent, .emptyMessage, .notOneAlert, .interruptedMessage,
            .unexpectedMessage, .messageAcrossKeyChange, .tooManyNonDataRecords:
            10
        case .badRecordMAC: 20
        case .recordTooLong: 22
        case .invalidKeyUpdateRequest: 47
        case .malformedKeyUpdate: 50
        }
    }

    var explanation: String {
        switch self {
        case .unexpectedRecord(let type): "unprotected record of type \(type) after the handshake"
        case .recordTooLong: "a record exceeds the maximum length"
        case .badRecordMAC: "bad record mac: a record was modified or reordered"
        case .noContentType: "a record contains only padding"
        case .unexpectedContent(let type): "a record has the unknown content type \(type)"
        case .emptyMessage: "an alert or handshake record is empty"
        case .notOneAlert: "an alert record does not contain exactly one alert"
        case .interruptedMessage: "a handshake message was interrupted by another record"
        case .unexpectedMessage(let type): "unexpected handshake message of type \(type) after the handshake"
        case .malformedKeyUpdate: "a KeyUpdate message is malformed"
        case .invalidKeyUpdateRequest(let value): "a KeyUpdate message has the invalid request_update \(value)"
        case .messageAcrossKeyChange: "a KeyUpdate message is not the last of its record"
        case .tooManyNonDataRecords: "too many records without application data"
        }
    }
}

/// Parses the client's post-handshake messages. Only KeyUpdate is allowed, since we request no client authentication
/// (RFC 8446 §4.6); it may be fragmented, but must end its record.
struct KeyUpdateParser: Equatable {
    enum Request: Equatable {
        case none
        /// update_requested: we must update our sending key before we send more data.
        case updateRequested
    }

    private static let messageType: UInt8 = 24
    private static let length = 5

    private var count = 0

    /// Whether a message is incomplete; no other record may interrupt it.
    var isInsideMessage: Bool { self.count > 0 }

    /// Parses the content of one handshake record.
    /// - Returns: `nil` while the message is incomplete.
    mutating func take(_ content: RawSpan) throws(RecordViolation) -> Request? {
        guard content.byteCount > 0 else { throw .emptyMessage }
        for offset in 0..<content.byteCount {
            let byte = content[byte: offset]
            self.count += 1
            guard self.count == Self.length else {
                try Self.check(byte, at: self.count - 1)
                continue
            }
            guard offset == content.byteCount - 1 else { throw .messageAcrossKeyChange }
            self.count = 0
            return try Self.request(byte)
        }
        return nil
    }

    private static func check(_ byte: UInt8, at index: Int) throws(RecordViolation) {
        switch index {
        case 0: if byte != Self.messageType { throw .unexpectedMessage(type: byte) }
        case 3: if byte != 1 { throw .malformedKeyUpdate }
        default: if byte != 0 { throw .malformedKeyUpdate }
        }
    }

    private static func request(_ byte: UInt8) throws(RecordViolation) -> Request {
        switch byte {
        case 0: .none
        case 1: .updateRequested
        default: throw .invalidKeyUpdateRequest(byte)
        }
    }
}
