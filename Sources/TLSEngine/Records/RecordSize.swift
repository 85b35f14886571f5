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
