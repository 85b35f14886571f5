public struct TLSConfiguration: Sendable {
    public enum Role: Sendable, Hashable {
        case client
        case server
    }

    public var role: Role
    public var minimumVersion: TLSVersion = .tls12
    public var maximumVersion: TLSVersion = .tls13
    /// ALPN protocols in order of preference, each 1 to 255 bytes. Default: none. A server with a list refuses a client
    /// that offers only others (no_application_protocol, RFC 7301 §3.2).
    public var applicationProtocols: [String] = []

    /// Certificates with their keys. Server: at least one; SNI selects among them by their DNS names, and the first is
    /// the default. Client: the first is presented when the server requests a certificate.
    public var identities: [TLSIdentity] = []
    /// Server: refuses a client whose SNI matches no identity (unrecognized_name) instead of presenting the default
    /// certificate.
    public var refusesUnknownServerNames = false

    public var peerVerification: PeerVerification
    public var trust: TrustAnchors = .system
    /// Client: the certificate must match the name or address of the connection. Default: true.
    public var checksServerName = true
    /// If not empty, the chain must contain one of these keys, in addition to all other checks (RFC 7469 §2.6).
    public var pins: Set<PublicKeyPin> = []
    public var revocation: RevocationChecking = .off
    /// The handshake pauses with `.verificationRequested` and the caller decides. Default: false.
    ///
    /// A client's handshake is suspended by OpenSSL. A server stops reading after the certificate: the handshake does
    /// not complete and no ticket is issued; under TLS 1.3 the client may consider itself connected, as with any server
    /// that verifies certificates. A rejection is sent as bad_certificate; by a TLS 1.3 server as handshake_failure, or
    /// as unexpected_message if the client's signature has not arrived. A resumed session is not verified again.
    public var delegatesVerification = false
    /// Client: the handshake pauses with `.clientCertificateRequested` when the server requests a certificate, instead
    /// of presenting the first identity. Default: false.
    public var delegatesClientCertificate = false

    /// Server: the implementation of the TLS 1.3 record layer after the handshake. Default: OpenSSL.
    public var recordLayer = TLSRecordLayer.openSSL

    public var resumption: ResumptionPolicy = .tickets
    /// Lifetime of a session in seconds, 1 to 604800 (RFC 8446 §4.6.1). Default: two hours.
    public var sessionLifetime = 7200
    /// Server: most bytes of a client's early data (RFC 8446 §4.2.10), which arrives before the handshake is complete and is
    /// delivered behind it. Needs `ResumptionPolicy.serverCache`, whose sessions are resumed once, so that early data is not
    /// taken twice (RFC 8446 §8.1), and OpenSSL's record layer. Default: 0, none.
    public var earlyDataLimit = 0
    /// Client: most sessions cached; the oldest is evicted. Default: 256.
    public var clientSessionLimit = 256

    /// Cipher suites of TLS 1.2 as an OpenSSL cipher list, in order of preference. Default: those with forward secrecy
    /// and authenticated encryption, as RFC 9325 §4.2 recommends; a peer with only older ones needs `DEFAULT`.
    public var cipherList = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
    /// Cipher suites of TLS 1.3, IANA names joined by colons, in order of preference. Default: the three of RFC 8446
    /// §9.1, the mandatory one first.
    public var cipherSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    /// OpenSSL's security level, 0 to 5. Default: 2, at least 112 bits: no RSA key under 2048 bits, no SHA-1 signature.
    public var securityLevel = 2
    public var keyLog: KeyLog?

    /// A client that verifies the server's chain with the system's roots, and its name.
    public static func client() -> TLSConfiguration {
        TLSConfiguration(role: .client, peerVerification: .required)
    }

    /// A server that presents `identities` and requests no client certificate.
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

/// The supported versions of TLS; older ones are deprecated (RFC 8996).
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

/// ProtocolNameList of ALPN (RFC 7301 §3.1).
enum ApplicationProtocols {
    /// Encodes `names`, each after its length in one byte.
    /// - Returns: `nil` if a name is empty or longer than 255 bytes, or the list exceeds 65535 bytes.
    static func encode(_ names: [String]) -> [UInt8]? {
        var encoded: [UInt8] = []
        for name in names {
            guard let count = UInt8(exactly: name.utf8.count), count > 0 else { return nil }
            encoded.append(count)
            encoded.append(contentsOf: name.utf8)
        }
        return encoded.count <= 0xFFFF ? encoded : nil
    }

    /// Selects the first of the server's protocols that the client offers.
    /// - Returns: the range of its name in `offered`; `nil` without a common protocol. A malformed list is read up to
    ///   its first malformed entry.
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

/// The source of certificates or revocation lists; read when a context is created or reloaded.
public enum CertificateSource: Sendable, Hashable {
    /// PEM text with any number of blocks; blocks of other kinds are skipped.
    case pem([UInt8])
    /// One DER-encoded item.
    case der([UInt8])
    /// Path of a file in either format.
    case file(String)
}

/// Looks up values by server name: an exact match first, then a wildcard for one label (RFC 9525 §6.3).
struct ServerNameTable<Value: Sendable>: Sendable {
    private var exact: [String: [Value]] = [:]
    private var wildcard: [String: [Value]] = [:]

    /// Adds `value` for a DNS name or `*.name`; case-insensitive, a trailing dot is ignored.
    mutating func add(_ value: Value, for name: String) {
        let name = Self.normalize(name)
        if name.hasPrefix("*.") {
            self.wildcard[String(name.dropFirst(2)), default: []].append(value)
        } else {
            self.exact[name, default: []].append(value)
        }
    }

    /// The values for `name` in the order in which they were added.
    func values(for name: String) -> [Value] {
        let name = Self.normalize(name)
        if let values = self.exact[name] { return values }
        guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return [] }
        return self.wildcard[String(name[name.index(after: dot)...])] ?? []
    }

    private static func normalize(_ name: String) -> String {
        let lower = name.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }
}

/// The roots that a peer's chain may lead to.
public enum TrustAnchors: Sendable, Hashable {
    /// The system's roots: SSL_CERT_FILE and SSL_CERT_DIR if set, else OpenSSL's default paths, else the first of the
    /// usual paths that exists.
    case system
    /// The system's roots and these.
    case systemAnd([CertificateSource])
    /// Only these. Each may also be an intermediate or a leaf certificate.
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

/// Whether the peer must present a certificate, and whether it is verified.
public enum PeerVerification: Sendable, Hashable {
    /// A server requests no certificate; a client accepts any certificate. The latter does not authenticate the server:
    /// only pins or the caller's own decision make it safe.
    case none
    /// A server requests a certificate and verifies it if there is one. On a client the same as `required`, because a
    /// server always presents one.
    case optional
    /// The handshake fails without a valid certificate.
    case required
}

/// Whether certificates are checked against revocation lists (RFC 5280 §6.3).
///
/// A certificate whose issuer has no current list among the given ones fails verification: the missing list could
/// contain it.
public enum RevocationChecking: Sendable, Hashable {
    case off
    /// Only the peer's leaf certificate.
    case peer(lists: [CertificateSource])
    /// Every certificate of the chain except the root.
    case wholeChain(lists: [CertificateSource])

    var lists: [CertificateSource] {
        switch self {
        case .off: []
        case .peer(let lists), .wholeChain(let lists): lists
        }
    }
}

/// How sessions are resumed without a full handshake.
public enum ResumptionPolicy: Sendable, Hashable {
    case off
    /// Server: stateless tickets (RFC 5077, RFC 8446 §4.6.1). Client: caches tickets and sessions, at most
    /// `TLSConfiguration.clientSessionLimit`.
    case tickets
    /// Server: caches at most `limit` sessions and evicts the oldest. Client: the same as `tickets`.
    case serverCache(limit: Int)
}

/// The record layer of a server's TLS 1.3 connections after the handshake. Handshakes, TLS 1.2 and clients always use
/// OpenSSL.
public enum TLSRecordLayer: Sendable, Hashable {
    /// OpenSSL's record layer, its buffers released while empty: 16 to 17 KiB for each idle connection.
    case openSSL
    /// This module's record layer with OpenSSL's ciphers: 5 to 6 KiB for each idle connection. Updates of OpenSSL fix
    /// its ciphers only. Cipher suites other than the three of RFC 8446 §9.1 use OpenSSL's record layer.
    case compact
}

/// The destination of TLS secrets in the NSS key log format, for decrypting captured traffic while debugging.
public enum KeyLog: Sendable {
    /// Called on the connection's thread with one line, without its newline.
    case lines(@Sendable (String) -> Void)
    /// Appends lines to the file at this path; creates it if it is missing.
    ///
    /// `failed` is called once, on a connection's thread, when a line cannot be written; the connection continues.
    case file(String, failed: (@Sendable () -> Void)? = nil)
}
