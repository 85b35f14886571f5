import ByteKernels

/// The version of HTTP that a head names.
public struct HTTPVersion: Comparable, Sendable {
    /// 0 to 9.
    public let major: Int
    /// 0 to 9.
    public let minor: Int

    public init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    public static let http11 = HTTPVersion(1, 1)

    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    /// Reads `HTTP/1.1` and the like: exactly one digit on each side, letters as they are (RFC 9112 §2.3).
    init?(_ text: RawSpan) {
        guard text.byteCount == 8, text[byte: 6] == UInt8(ascii: "."), let major = Self.digit(text[byte: 5]),
            let minor = Self.digit(text[byte: 7])
        else { return nil }
        let name = "HTTP/".utf8.span
        for offset in name.indices where text[byte: offset] != name[offset] { return nil }
        self.init(major, minor)
    }

    private static func digit(_ byte: UInt8) -> Int? {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
    }
}
