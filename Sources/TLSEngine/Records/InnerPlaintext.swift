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
