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
