/// What is wrapped around the compressed blocks.
package enum DeflateFormat: Equatable, Sendable {
    /// Nothing at all (RFC 1951), as permessage-deflate has it.
    case raw
    /// Two bytes of header and an Adler-32 behind (RFC 1950); HTTP's `deflate`.
    case zlib
    /// A header of ten bytes or more, a CRC-32 and the length behind (RFC 1952).
    case gzip

    /// The format and the window in the one number by which zlib knows them.
    func windowBitsForZlib(_ windowBits: Int) -> Int32 {
        switch self {
        case .raw: Int32(-windowBits)
        case .zlib: Int32(windowBits)
        case .gzip: Int32(windowBits + 16)
        }
    }
}
