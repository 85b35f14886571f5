/// Everything that a `TLSContext` is made from.
public struct TLSConfiguration: Sendable {
    public enum Role: Sendable, Hashable {
        case client
        case server
    }

    public var role: Role
    /// Default: TLS 1.2.
    public var minimumVersion: TLSVersion = .tls12
    /// Default: TLS 1.3.
    public var maximumVersion: TLSVersion = .tls13
    /// Protocols for ALPN, the most wanted first; each 1 to 255 bytes. Default: none. A server that has some refuses a
    /// client that offers only others (no_application_protocol, RFC 7301 §3.2).
    public var applicationProtocols: [String] = []

    /// Certificates with their keys. Server: at least one; the name in the ClientHello picks among them by the DNS
    /// names they hold, and the first is the default. Client: the first is given when the server asks.
    public var identities: [TLSIdentity] = []
    /// Server: a client that asks for a name of no identity is refused (unrecognized_name) instead of given the default
    /// one.
    public var refusesUnknownServerNames = false

    public var peerVerification: PeerVerification
    public var trust: TrustAnchors = .system
    /// Client: the certificate must be for the name or address of the connection. Default: true.
    public var checksServerName = true
    /// If any, one of these keys must occur in the chain, beside everything else that is verified (RFC 7469 §2.6).
    public var pins: Set<PublicKeyPin> = []
    public var revocation: RevocationChecking = .off
    /// The connection stops at `.verificationRequested` and the caller's answer decides. Default: false.
    ///
    /// A client's handshake is suspended meanwhile. A server's is held: it reads nothing behind the certificate,
    /// completes nothing, issues no ticket; under TLS 1.3 the client may think itself connected, as it may with any
    /// server that verifies. A rejection is told to the peer as bad_certificate; by a TLS 1.3 server as
    /// handshake_failure, or unexpected_message if the client's signature has not arrived. A resumed session is not
    /// asked about again.
    public var delegatesVerification = false
    /// Client: the connection stops at `.clientCertificateRequested` when the server asks for a certificate, instead of
    /// giving the first identity. Default: false.
    public var delegatesClientCertificate = false

    /// Server: who protects the records of TLS 1.3 behind the handshake. Default: OpenSSL.
    public var recordLayer = TLSRecordLayer.openSSL

    public var resumption: ResumptionPolicy = .tickets
    /// How long a session may be resumed, in seconds, 1 to 604800 (RFC 8446 §4.6.1). Default: two hours.
    public var sessionLifetime = 7200
    /// Client: sessions kept in all; the least recently stored makes room. Default: 256.
    public var clientSessionLimit = 256

    /// Cipher suites of TLS 1.2 in OpenSSL's language, the most wanted first. Default: those with forward secrecy and
    /// authenticated encryption, as RFC 9325 §4.2 recommends; a peer that knows only older ones needs `DEFAULT` here.
    public var cipherList = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
    /// Cipher suites of TLS 1.3, IANA names joined by colons, the most wanted first. Default: all three that RFC 8446
    /// §9.1 names, with the one that everybody must have first.
    public var cipherSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    /// OpenSSL's security level, 0 to 5. Default: 2, at least 112 bits: no RSA key under 2048 bits, no SHA-1 signature.
    public var securityLevel = 2
    public var keyLog: KeyLog?

    /// A client that verifies the server by the system's roots and by name.
    public static func client() -> TLSConfiguration {
        TLSConfiguration(role: .client, peerVerification: .required)
    }

    /// A server that shows `identities` and asks clients for no certificate.
    public static func server(_ identities: [TLSIdentity]) -> TLSConfiguration {
        var configuration = TLSConfiguration(role: .server, peerVerification: .none)
        configuration.identities = identities
        return configuration
    }

    private init(role: Role, peerVerification: PeerVerification) {
        self.role = role
        self.peerVerification = peerVerification
    }
}

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

/// The protocol name lists of ALPN (RFC 7301 §3.1).
enum ApplicationProtocols {
    /// The wire form of `names`: each after its length in one byte.
    /// - Returns: `nil` if a name is empty or longer than 255 bytes, or all of them exceed 65535.
    static func encode(_ names: [String]) -> [UInt8]? {
        var encoded: [UInt8] = []
        for name in names {
            guard let count = UInt8(exactly: name.utf8.count), count > 0 else { return nil }
            encoded.append(count)
            encoded.append(contentsOf: name.utf8)
        }
        return encoded.count <= 0xFFFF ? encoded : nil
    }

    /// Where in the client's list the server's most wanted common name is, without its length byte.
    /// - Returns: `nil` if the lists have nothing in common; a malformed list ends where it breaks.
    static func select(from offered: RawSpan, preferred: [[UInt8]]) -> Range<Int>? {
        for name in preferred {
            var offset = 0
            while offset < offered.byteCount {
                let start = offset + 1
                let end = start + Int(offered[byte: offset])
                guard end <= offered.byteCount else { break }
                if end - start == name.count, self.equal(offered, from: start, name) { return start..<end }
                offset = end
            }
        }
        return nil
    }

    private static func equal(_ bytes: RawSpan, from start: Int, _ name: [UInt8]) -> Bool {
        for index in name.indices where bytes[byte: start + index] != name[index] { return false }
        return true
    }
}

/// Where certificates or revocation lists come from. Read when a context is made or reloaded, never later.
public enum CertificateSource: Sendable, Hashable {
    /// PEM text with any number of blocks; blocks of other kinds are skipped.
    case pem([UInt8])
    /// One DER-encoded item.
    case der([UInt8])
    /// A file with either of the two.
    case file(String)
}

/// Picks values by the name a client asks for: an exact name before a wildcard of one label (RFC 9525 §6.3).
struct ServerNameTable<Value> {
    private var exact: [String: [Value]] = [:]
    private var wildcard: [String: [Value]] = [:]

    /// Adds `value` under a DNS name or `*.name`; letters' case and a final dot do not matter.
    mutating func add(_ value: Value, for name: String) {
        let name = Self.normalize(name)
        if name.hasPrefix("*.") {
            self.wildcard[String(name.dropFirst(2)), default: []].append(value)
        } else {
            self.exact[name, default: []].append(value)
        }
    }

    /// Everything under `name`, in the order of adding; empty if nothing is.
    func values(for name: String) -> [Value] {
        let name = Self.normalize(name)
        if let values = self.exact[name] { return values }
        guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return [] }
        return self.wildcard[String(name[name.index(after: dot)...])] ?? []
    }

    static func normalize(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}

/// Which roots a peer's chain may end in.
public enum TrustAnchors: Sendable, Hashable {
    /// The system's roots: SSL_CERT_FILE and SSL_CERT_DIR if set, else OpenSSL's own place, else the first of the usual
    /// places that exists.
    case system
    /// The system's roots and these as well.
    case systemAnd([CertificateSource])
    /// These and no others. Each may also be an intermediate or a peer's own certificate.
    case only([CertificateSource])

    var extra: [CertificateSource] {
        switch self {
        case .system: []
        case .systemAnd(let sources), .only(let sources): sources
        }
    }

    var includesSystem: Bool {
        switch self {
        case .system, .systemAnd: true
        case .only: false
        }
    }
}

/// What is asked of the peer's certificate.
public enum PeerVerification: Sendable, Hashable {
    /// A server asks clients for no certificate; a client takes whatever certificate the server shows. The latter gives
    /// secrecy towards nobody in particular: only pins or the caller's own decision make it safe.
    case none
    /// A server asks for a certificate and verifies one that is given; a client without is welcome. On a client the
    /// same as `required`, because a server always shows one.
    case optional
    /// Without a valid certificate there is no connection.
    case required
}

/// Whether certificates are looked up in revocation lists (RFC 5280 §6.3).
///
/// A certificate whose issuer has no current list among the given ones fails verification: a list that is missing could
/// have named it.
public enum RevocationChecking: Sendable, Hashable {
    case off
    /// Only the peer's own certificate.
    case peer(lists: [CertificateSource])
    /// Every certificate of the chain but the root.
    case wholeChain(lists: [CertificateSource])

    var lists: [CertificateSource] {
        switch self {
        case .off: []
        case .peer(let lists), .wholeChain(let lists): lists
        }
    }
}

/// The SHA-256 of a public key as it stands in a certificate (SubjectPublicKeyInfo), as RFC 7469 §2.4 pins it.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// 32 bytes.
    public let digest: [UInt8]

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    /// Reads the base64 form, bare or after `sha256/` or as `pin-sha256="…"`.
    /// - Returns: `nil` unless it is 44 characters of base64 for 32 bytes.
    public init?(_ text: String) {
        var body = Substring(text)
        for prefix in ["pin-sha256=", "sha256/"] where body.hasPrefix(prefix) { body = body.dropFirst(prefix.count) }
        if body.hasPrefix("\""), body.hasSuffix("\""), body.count > 1 { body = body.dropFirst().dropLast() }
        guard let digest = Self.decode(Array(body.utf8)) else { return nil }
        self.digest = digest
    }

    /// The form `sha256/…` with base64.
    public var description: String {
        "sha256/\(Self.encode(self.digest))"
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// 43 digits carry 258 bits; the last two must be zero, so that a pin has one spelling.
    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        guard text.count == 44, text[43] == UInt8(ascii: "=") else { return nil }
        var digest: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in text.dropLast() {
            guard let digit = Self.alphabet.firstIndex(of: character) else { return nil }
            bits = (bits << 6 | UInt32(digit)) & 0xFFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            digest.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        return bits & 3 == 0 && digest.count == 32 ? digest : nil
    }

    private static func encode(_ digest: [UInt8]) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in digest {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            count += 8
            while count >= 6 {
                count -= 6
                text.append(Self.alphabet[Int(bits >> UInt32(count)) & 63])
            }
        }
        if count > 0 { text.append(Self.alphabet[Int(bits << UInt32(6 - count)) & 63]) }
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }
}

/// How sessions are resumed without a full handshake.
public enum ResumptionPolicy: Sendable, Hashable {
    case off
    /// Server: tickets that the client keeps (RFC 5077, RFC 8446 §4.6.1), nothing kept here. Client: tickets and
    /// sessions are kept, as many as `TLSConfiguration.clientSessionLimit` allows.
    case tickets
    /// Server: sessions are kept here, at most `limit`; the oldest makes room. Client: the same as `tickets`.
    case serverCache(limit: Int)
}

/// Which code protects the records of a server's TLS 1.3 connection behind its handshake. The handshake, TLS 1.2 and the
/// client's role always belong to OpenSSL.
public enum TLSRecordLayer: Sendable, Hashable {
    /// OpenSSL's own connection, its buffers released while they are empty: 16 to 17 KiB for each idle connection.
    case openSSL
    /// The record protocol of this module over OpenSSL's ciphers: 5 to 6 KiB for each idle connection. An update of
    /// OpenSSL reaches its ciphers only. Cipher suites other than the three of RFC 8446 §9.1 stay with OpenSSL.
    case compact
}

/// Where the secrets of connections go, one NSS key log line each, so that captured traffic can be read while
/// debugging.
public enum KeyLog: Sendable {
    /// Called on the connection's thread with one line, without its newline.
    case lines(@Sendable (String) -> Void)
    /// Lines are appended to the file at this path, which is made if it is missing.
    case file(String)
}
