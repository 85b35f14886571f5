/// TLS of a listener. Files are read at start and again at each reload.
package struct ServerTLSSettings: Sendable, Equatable {
    /// Whether clients must present a certificate.
    package enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
        case none
        /// Requested; a client without a certificate is accepted, one with an invalid certificate is not.
        case request
        /// The handshake fails unless the client presents a certificate issued by `clientCA`.
        case require
    }

    /// Implementation of the TLS 1.3 record layer after the handshake.
    package enum Records: String, Sendable, Equatable, CaseIterable {
        case openssl
        /// Our own on top of OpenSSL's ciphers: needs a third of the memory, but gets no fixes by updates of OpenSSL.
        case compact
    }

    /// At least one. Chosen by the client's server name (SNI); the first is used if none matches.
    package var certificates: [CertificateFiles]
    /// PEM file of the authorities that issue client certificates. Present unless `clientAuthentication` is `none`.
    package var clientCA: String?
    package var clientAuthentication = ClientAuthentication.none
    /// PEM or DER files with the current revocation lists of the issuers of client certificates; empty checks none.
    package var clientRevocationLists: [String] = []
    /// ALPN protocols in our order of preference, each 1 to 255 bytes; empty does not negotiate ALPN.
    package var alpn: [String] = []
    package var minimumVersion = MinimumTLSVersion.tls12
    package var records = Records.openssl
    /// File to which session secrets are appended (NSS key log) to decrypt captured traffic; `nil` writes none.
    package var keyLog: String?

    package init(certificates: [CertificateFiles]) {
        self.certificates = certificates
    }
}

/// TLS towards an upstream. The certificate is verified unless `verifies` is false.
package struct ClientTLSSettings: Sendable, Equatable {
    /// PEM file of authorities trusted instead of the system's; `nil` trusts the system's.
    package var authorities: String?
    /// PEM or DER files with the current revocation lists of every authority in the chain; empty checks none.
    package var revocationLists: [String] = []
    /// Client certificate, presented if the server requests one.
    package var identity: CertificateFiles?
    /// Host name for SNI and verification; `nil` uses the URL's host.
    package var serverName: String?
    /// If false, any certificate is accepted, for tests only. Pins are still checked.
    package var verifies = true
    /// The peer must present one of these public keys; empty accepts any.
    package var pins: [PublicKeyPin] = []
    /// Application protocols offered; empty offers none towards streams, and `http/1.1` towards WebSockets.
    package var alpn: [String] = []
    package var minimumVersion = MinimumTLSVersion.tls12
    /// See `ServerTLSSettings.keyLog`.
    package var keyLog: String?

    package init() {}
}

/// A certificate chain and its private key, on disk.
package struct CertificateFiles: Sendable, Equatable {
    /// PEM with the leaf first and then its intermediates, or a PKCS#12 file (`.p12`, `.pfx`) with the key.
    package var certificate: String
    /// PEM; `nil` if `certificate` contains the key.
    package var key: String?
    package var password: KeyPassword?
    /// Server names that select this certificate, exact or `*.example.com`; empty uses the names in the certificate.
    package var serverNames: [HostPattern] = []

    package init(certificate: String, key: String? = nil, password: KeyPassword? = nil) {
        self.certificate = certificate
        self.key = key
        self.password = password
    }
}

/// Password of a private key, or another secret. Never appears in a description.
package enum KeyPassword: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    case text(String)
    /// The first line of this file.
    case file(String)

    package var description: String {
        switch self {
        case .text: "(given)"
        case .file(let path): "(in \(path))"
        }
    }

    package var debugDescription: String { self.description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The SHA-256 of a certificate's public key (its SubjectPublicKeyInfo, RFC 7469 §2.4).
package struct PublicKeyPin: Sendable, Hashable {
    /// 32 bytes.
    package let digest: [UInt8]

    /// - Returns: `nil` unless there are 32 bytes.
    package init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }
}

/// The lowest TLS version that is accepted.
package enum MinimumTLSVersion: String, Sendable, Equatable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
}

/// Keys of a listener's `tls`.
package enum ServerTLSKey: String, CaseIterable, Sendable {
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case certificates
    case clientCA = "client-ca"
    case clientAuth = "client-auth"
    case clientCRL = "client-crl"
    case alpn
    case minVersion = "min-version"
    case records
    case keyLog = "key-log"
}

/// Keys of an upstream's `tls`.
package enum ClientTLSKey: String, CaseIterable, Sendable {
    case ca
    case crl
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case serverName = "server-name"
    case insecure
    case pins
    case alpn
    case minVersion = "min-version"
    case keyLog = "key-log"
}

/// Keys of an entry of `certificates`.
package enum CertificateKey: String, CaseIterable, Sendable {
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case serverNames = "server-names"
}

extension ServerTLSSettings {
    init(reading section: SectionReader<ServerTLSKey>) {
        self.init(certificates: [])
        if section.has(.certificate) || !section.has(.certificates) {
            self.certificates.append(Self.single(section))
        } else {
            for key in [ServerTLSKey.key, .password, .passwordFile] where section.has(key) {
                section.add(
                    key, expected: "\(key.rawValue) beside the certificate it belongs to", remedy: "move it there")
            }
        }
        if section.has(.certificates) {
            let elements = section.elements(.certificates)
            if elements.isEmpty { section.add(.certificates, expected: "at least one certificate") }
            self.certificates += elements.map {
                CertificateFiles(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            }
        }
        section.readOptional(.clientCA, into: &self.clientCA, as: .path)
        self.clientAuthentication = section.has(.clientCA) ? .require : .none
        section.read(.clientAuth, into: &self.clientAuthentication, as: .choice)
        section.readList(.clientCRL, into: &self.clientRevocationLists, as: .path)
        self.checkClientAuthentication(section)
        section.readList(.alpn, into: &self.alpn, as: .applicationProtocol)
        section.read(.minVersion, into: &self.minimumVersion, as: .choice)
        section.read(.records, into: &self.records, as: .choice)
        section.readOptional(.keyLog, into: &self.keyLog, as: .path)
    }

    private static func single(_ section: SectionReader<ServerTLSKey>) -> CertificateFiles {
        var files = CertificateFiles(
            certificate: section.required(.certificate, as: .path, unless: .certificates) ?? "")
        section.readOptional(.key, into: &files.key, as: .path)
        files.password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        return files
    }

    private func checkClientAuthentication(_ section: SectionReader<ServerTLSKey>) {
        if self.clientAuthentication == .none, section.has(.clientCA) {
            section.add(
                .clientAuth, expected: "request or require, as there is a client-ca", remedy: "leave out one of the two"
            )
        }
        if self.clientAuthentication != .none, !section.has(.clientCA) {
            section.add(
                .clientCA, expected: "the authorities that client certificates are checked against", found: "nothing",
                remedy: "add client-ca: FILE")
        }
        if section.has(.clientCRL), !section.has(.clientCA) {
            section.add(
                .clientCRL,
                expected: "no revocation lists, as there is no client-ca",
                remedy: "add client-ca: FILE, or leave it out")
        }
    }
}

extension ClientTLSSettings {
    init(reading section: SectionReader<ClientTLSKey>) {
        self.init()
        section.readOptional(.ca, into: &self.authorities, as: .path)
        section.readList(.crl, into: &self.revocationLists, as: .path)
        section.readOptional(.serverName, into: &self.serverName, as: .host)
        var isInsecure = false
        section.read(.insecure, into: &isInsecure, as: .boolean)
        self.verifies = !isInsecure
        section.readList(.pins, into: &self.pins, as: .publicKeyPin)
        section.readList(.alpn, into: &self.alpn, as: .applicationProtocol)
        section.read(.minVersion, into: &self.minimumVersion, as: .choice)
        section.readOptional(.keyLog, into: &self.keyLog, as: .path)
        self.readIdentity(section)
        let conflicts = [(ClientTLSKey.ca, "authorities to trust"), (.crl, "revocation lists to check")]
        if isInsecure, let (_, purpose) = conflicts.first(where: { section.has($0.0) }) {
            section.add(
                .insecure, expected: "either \(purpose) or insecure: true", remedy: "leave out one of the two")
        }
    }

    private mutating func readIdentity(_ section: SectionReader<ClientTLSKey>) {
        let password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        var key: String?
        section.readOptional(.key, into: &key, as: .path)
        if section.has(.certificate) {
            let certificate = section.value(.certificate, as: ValueSyntax<String>.path) ?? ""
            self.identity = CertificateFiles(certificate: certificate, key: key, password: password)
        } else if let orphan = [ClientTLSKey.key, .password, .passwordFile].first(where: section.has) {
            section.add(
                .certificate, expected: "the certificate that \(orphan.rawValue) belongs to", found: "nothing",
                remedy: "add certificate: FILE")
        }
    }
}

extension CertificateFiles {
    init(reading section: SectionReader<CertificateKey>) {
        self.init(certificate: section.required(.certificate, as: .path) ?? "")
        section.readOptional(.key, into: &self.key, as: .path)
        self.password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        section.readList(.serverNames, into: &self.serverNames, as: .hostPattern)
    }
}

extension KeyPassword {
    /// The value of `text`, or the file named by `file`; both together are a problem.
    init?<Key>(reading section: SectionReader<Key>, text: Key, file: Key) {
        if section.has(text), section.has(file) {
            section.add(file, expected: "only one of \(text.rawValue) and \(file.rawValue)", remedy: "leave one out")
        }
        if let path = section.value(file, as: ValueSyntax<String>.path) {
            self = .file(path)
        } else if let password = section.value(text, as: ValueSyntax<String>.text) {
            self = .text(password)
        } else {
            return nil
        }
    }
}
