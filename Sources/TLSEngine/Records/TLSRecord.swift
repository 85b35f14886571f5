/// The five bytes in front of a record, once all records are protected (RFC 8446 §5.2).
enum RecordHeader {
    /// - Returns: the length of the whole record that `bytes` begin with, header and all; `nil` until the header is
    ///   there. The version is not looked at, as §5.1 wants it; the AEAD covers it.
    /// - Throws: `.unexpectedRecord` for a record in the clear, a ChangeCipherSpec included (§5: none may come after
    ///   the peer's Finished); `.recordTooLong` above 2^14 + 256 bytes; `.badRecordMAC` where no tag has room.
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

/// What a record carries (RFC 8446 §5.1).
package enum ContentType: UInt8, Sendable {
    case alert = 21
    case handshake = 22
    case applicationData = 23
}

/// What a record held once it is decrypted: content, its type, and zeros that hide how long it is (RFC 8446 §5.4).
struct InnerPlaintext: Equatable {
    let type: UInt8
    /// Bytes of content, which are the first ones.
    let count: Int

    /// - Parameter bytes: content, type and padding.
    /// - Throws: `.recordTooLong` above 2^14 + 1 bytes, padding included; `.noContentType` if there is nothing but
    ///   padding.
    init(_ bytes: RawSpan) throws(RecordViolation) {
        guard bytes.byteCount <= RecordSize.innerPlaintext else { throw .recordTooLong }
        var last = bytes.byteCount - 1
        while last >= 0, bytes[byte: last] == 0 { last -= 1 }
        guard last >= 0 else { throw .noContentType }
        self.type = bytes[byte: last]
        self.count = last
    }
}

/// Sizes in a record of TLS 1.3, in bytes (RFC 8446 §5.1 and §5.2).
enum RecordSize {
    static let header = 5
    /// What all AEADs of `RecordSuite` add.
    static let tag = 16
    /// Most content of one record.
    static let content = 1 << 14
    /// Most bytes of content, type and padding together (§5.4).
    static let innerPlaintext = (1 << 14) + 1
    /// Most bytes behind a record's header.
    static let fragment = (1 << 14) + 256
}

/// A cipher suite of TLS 1.3 whose records are protected here once OpenSSL has done the handshake (RFC 8446 §B.4).
/// Connections with another one stay with OpenSSL.
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

    /// Length of traffic secrets in bytes, which is that of the suite's hash.
    var secretLength: Int {
        switch self {
        case .aes128GCM, .chaCha20Poly1305: 32
        case .aes256GCM: 48
        }
    }

    /// The IANA name.
    var name: String {
        switch self {
        case .aes128GCM: "TLS_AES_128_GCM_SHA256"
        case .aes256GCM: "TLS_AES_256_GCM_SHA384"
        case .chaCha20Poly1305: "TLS_CHACHA20_POLY1305_SHA256"
        }
    }
}

/// What established records have to tell.
package enum RecordEvent: Equatable, Sendable {
    /// `count` bytes, at least 1, were put at the front of the caller's buffer.
    case plaintext(count: Int)
    /// close_notify.
    case closed
    /// An alert that ends the connection, with its AlertDescription.
    case alert(UInt8)
    case failed(RecordError)
}

/// Why records cannot go on.
package enum RecordError: Error, Equatable, Sendable {
    case peer(RecordViolation)
    /// OpenSSL's cryptography could not do its work: memory.
    case engine
}

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
    case tooManyNonDataRecords

    /// The AlertDescription that tells the peer (RFC 8446 §6).
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
        case .tooManyNonDataRecords: "too many records came that hold no data"
        }
    }
}

/// Handshake messages of a client whose handshake is over. Only KeyUpdate is possible, since we ask for nothing
/// (RFC 8446 §4.6); it may come in parts, but must end its record.
struct KeyUpdateParser: Equatable {
    enum Request: Equatable {
        case none
        /// We are to change our key too, before we send more data.
        case updateRequested
    }

    private static let messageType: UInt8 = 24
    private static let length = 5

    private var count = 0

    /// Whether part of a message came, between which and the rest nothing else may come.
    var isInsideMessage: Bool { self.count > 0 }

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
        case 1: .updateRequested
        default: throw .invalidKeyUpdateRequest(byte)
        }
    }
}
