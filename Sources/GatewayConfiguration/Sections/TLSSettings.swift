/// TLS of a listener. Files are read at start and again at each reload.
package struct ServerTLSSettings: Sendable, Equatable {
    /// Whether clients are asked for a certificate.
    package enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
        case none
        /// Asked for; a client without one is let in, one with a bad one is not.
        case request
        /// A client without a certificate that `clientCA` vouches for fails the handshake.
        case require
    }

    /// Which code protects the records of TLS 1.3 behind the handshake.
    package enum Records: String, Sendable, Equatable, CaseIterable {
        case openssl
        /// Ours over OpenSSL's ciphers: a third of the memory, out of reach of OpenSSL's updates.
        case compact
    }

    /// At least one. The client's server name picks among them; the first is used when none fits.
    package var certificates: [CertificateFiles]
    /// PEM file of the authorities that client certificates are checked against. Present unless `clientAuthentication`
    /// is
    /// `none`.
    package var clientCA: String?
    package var clientAuthentication = ClientAuthentication.none
    /// PEM or DER files with the current revocation lists of the authorities that client certificates come from; empty
    /// looks in none.
    package var clientRevocationLists: [String] = []
    /// Application protocols in our order of preference; empty takes part in no choice. Each 1 to 255 bytes.
    package var alpn: [String] = []
    package var minimumVersion = TLSVersionFloor.tls12
    package var records = Records.openssl
    /// File that session secrets are appended to (NSS key log), for looking at captured traffic; `nil` writes none.
    package var keyLog: String?

    package init(certificates: [CertificateFiles]) {
        self.certificates = certificates
    }
}

/// TLS towards an upstream. Verification is on unless `verifies` says otherwise.
package struct ClientTLSSettings: Sendable, Equatable {
    /// PEM file of authorities that are trusted instead of the system's; `nil` trusts the system's.
    package var authorities: String?
    /// PEM or DER files with the current revocation lists of every authority in the chain; empty looks in none.
    package var revocationLists: [String] = []
    /// Certificate presented when the server asks for one.
    package var identity: CertificateFiles?
    /// Host name for SNI and verification; `nil` uses the URL's host.
    package var serverName: String?
    /// Off, any certificate will do: only for tests. Pins are still checked.
    package var verifies = true
    /// Public keys of which the peer must show one; empty asks for none.
    package var pins: [PublicKeyPin] = []
    /// Application protocols offered; empty offers none towards streams, and `http/1.1` towards WebSockets.
    package var alpn: [String] = []
    package var minimumVersion = TLSVersionFloor.tls12
    /// As for a listener.
    package var keyLog: String?

    package init() {}
}

/// A certificate chain and its private key, on disk.
package struct CertificateFiles: Sendable, Equatable {
    /// PEM with the leaf first and then its intermediates, or a PKCS#12 file (`.p12`, `.pfx`) that holds the key too.
    package var certificate: String
    /// PEM; `nil` when `certificate` holds the key.
    package var key: String?
    package var password: KeyPassword?
    /// Server names that choose this certificate, exact or `*.example.com`; empty goes by the names in the certificate.
    package var serverNames: [HostPattern] = []

    package init(certificate: String, key: String? = nil, password: KeyPassword? = nil) {
        self.certificate = certificate
        self.key = key
        self.password = password
    }
}

/// Password of an encrypted private key. Never appears in a description.
package enum KeyPassword: Sendable, Equatable {
    case text(String)
    /// The first line of this file.
    case file(String)
}

extension KeyPassword: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
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

/// The oldest TLS that is spoken.
package enum TLSVersionFloor: String, Sendable, Equatable, CaseIterable {
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
                expected: "no revocation lists, as there is no client-ca whose certificates they could name",
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
        let rivals = [(ClientTLSKey.ca, "authorities to verify with"), (.crl, "revocation lists to look in")]
        if isInsecure, let (_, sense) = rivals.first(where: { section.has($0.0) }) {
            section.add(
                .insecure, expected: "either \(sense) or insecure: true", remedy: "leave out one of the two")
        }
    }

    private mutating func readIdentity(_ section: SectionReader<ClientTLSKey>) {
        let password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        var key: String?
        section.readOptional(.key, into: &key, as: .path)
        if section.has(.certificate) {
            let certificate = section.value(.certificate, as: ValueSyntax<String>.path) ?? ""
            self.identity = CertificateFiles(certificate: certificate, key: key, password: password)
        } else if let alone = [ClientTLSKey.key, .password, .passwordFile].first(where: section.has) {
            section.add(
                .certificate, expected: "the certificate that \(alone.rawValue) belongs to", found: "nothing",
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
    /// The password in `text` or in the file that `file` names; both together are a problem.
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
