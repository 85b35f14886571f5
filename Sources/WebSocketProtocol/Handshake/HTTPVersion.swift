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
    init?(_ text: Substring) {
        let bytes = Array(text.utf8)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[6] == UInt8(ascii: "."),
            let major = Self.digit(bytes[5]), let minor = Self.digit(bytes[7])
        else { return nil }
        self.init(major, minor)
    }

    private static func digit(_ byte: UInt8) -> Int? {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
    }
}
