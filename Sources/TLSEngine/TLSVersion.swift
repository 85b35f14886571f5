/// The versions of TLS that are spoken here; older ones are not (RFC 8996).
public enum TLSVersion: UInt16, Sendable, Hashable, Comparable, CustomStringConvertible {
    /// RFC 5246.
    case tls12 = 0x0303
    /// RFC 8446.
    case tls13 = 0x0304

    public static func < (left: TLSVersion, right: TLSVersion) -> Bool {
        left.rawValue < right.rawValue
    }

    public var description: String {
        switch self {
        case .tls12: "TLS 1.2"
        case .tls13: "TLS 1.3"
        }
    }
}
