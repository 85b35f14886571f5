/// Bytes that begin like a PROXY protocol header but are none. The connection is reset, as the specification demands.
package enum ProxyHeaderViolation: String, Error, Hashable, Sendable {
    /// Longer than the limit, or a version 1 line without its end in 107 bytes.
    case tooLong = "too-long"
    /// A version 1 line that is not of the grammar.
    case malformedLine = "malformed-line"
    /// Version 2 with another version, command, family or protocol than those defined.
    case unknownFields = "unknown-fields"
    /// Version 2 too short for its addresses, or with a TLV that goes beyond the end.
    case malformedLength = "malformed-length"
    /// Version 2 with a CRC-32C that does not fit.
    case wrongChecksum = "wrong-checksum"
}
