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
package typealias ServerTLSKey = SettingsKeyName<ServerTLSSettings>

extension ServerTLSKey {
    package static var certificate: Self { "certificate" }
    package static var certificates: Self { "certificates" }
    package static var clientCA: Self { "client-ca" }
    fileprivate static var clientAuth: Self { "client-auth" }
    package static var clientCRL: Self { "client-crl" }
    package static var keyLog: Self { "key-log" }
}

/// Keys of an upstream's `tls`.
package typealias ClientTLSKey = SettingsKeyName<ClientTLSSettings>

extension ClientTLSKey {
    package static var ca: Self { "ca" }
    package static var crl: Self { "crl" }
    package static var certificate: Self { "certificate" }
    package static var serverName: Self { "server-name" }
    fileprivate static var insecure: Self { "insecure" }
    package static var keyLog: Self { "key-log" }
}

/// Keys of an entry of `certificates`.
package typealias CertificateKey = SettingsKeyName<CertificateFiles>

extension CertificateKey {
    package static var certificate: Self { "certificate" }
    package static var key: Self { "key" }
    package static var passwordFile: Self { "password-file" }
}

extension CertificateFiles: SettingsSection {
    static let sectionName = "Certificate"
    static let initial = CertificateFiles(certificate: "")
    static let keys: [SettingsKey<CertificateFiles>] =
        Self.fileKeys(isRequired: true) + [
            .list(
                "server-names", \.serverNames, .hostPattern, default: "the names in the certificate",
                example: #"[b.example, "*.b.example"]"#,
                "Server names that select this certificate; `*.` matches one label.")
        ]

    static func fileKeys(isRequired: Bool) -> [SettingsKey<CertificateFiles>] {
        let text =
            "PEM file with the leaf first and then its intermediates, or a PKCS#12 file (`.p12`, `.pfx`) with the key."
        return [
            isRequired
                ? .required(.certificate, \.certificate, .path, text)
                : .value(.certificate, \.certificate, .path, text),
            .optional(
                .key, \.key, .path, default: "the key in the file of the certificate",
                example: "/etc/sluice/server.key",
                "PEM file of the certificate's private key."),
        ] + KeyPassword.keys("password", file: .passwordFile, \.password, "Password of an encrypted private key")
    }
}

extension KeyPassword {
    /// Keys of a secret: its text, or the file with it; both together are a problem.
    static func keys<Settings>(
        _ name: SettingsKeyName<Settings>, file: SettingsKeyName<Settings>,
        _ property: SettingsKey<Settings>.Property<KeyPassword?>, _ text: String
    ) -> [SettingsKey<Settings>] {
        [
            .custom(
                name, .value(ValueSyntax<String>.text), example: "secret",
                "\(text). Hidden wherever the configuration is shown; better kept in a file."
            ) { section, settings in
                settings[keyPath: property] = section.value(name, as: ValueSyntax<String>.text).map { .text($0) }
            },
            .custom(
                file, .value(ValueSyntax<String>.path), example: "/etc/sluice/\(name.rawValue).txt",
                "\(text). The value is the first line of this file. Not together with `\(name.rawValue)`."
            ) { section, settings in
                if section.has(name), section.has(file) {
                    section.add(
                        file, expected: "only one of \(name.rawValue) and \(file.rawValue)", remedy: "leave one out")
                }
                guard let path = section.value(file, as: ValueSyntax<String>.path) else { return }
                settings[keyPath: property] = .file(path)
            },
        ]
    }
}

extension ServerTLSSettings: SettingsSection {
    static let sectionName = "ServerTLS"
    static let initial = ServerTLSSettings(certificates: [])
    static let keys: [SettingsKey<ServerTLSSettings>] =
        SettingsKey.group(CertificateFiles.fileKeys(isRequired: false), \.firstCertificate) + Self.ownKeys

    private static let ownKeys: [SettingsKey<ServerTLSSettings>] = [
        .custom(
            .certificates, .list(.of(CertificateFiles.self)), example: "[{certificate: b.pem, key: b.key}]",
            """
            Further certificates, chosen by the client's server name (SNI). The first certificate is used if none \
            matches.
            """
        ) { section, settings in settings.readCertificates(section) },
        .optional(
            .clientCA, \.clientCA, .path, example: "/etc/sluice/clients-ca.pem",
            "PEM file of the authorities that issue client certificates; with it `client-auth` is `require` by default."
        ),
        .value(
            .clientAuth, \.clientAuthentication, .choice, default: "`require` with a `client-ca`, else `none`",
            example: "request",
            """
            Whether clients must present a certificate. `request` accepts a client without one. An invalid certificate \
            always fails the handshake.
            """),
        .list(
            .clientCRL, \.clientRevocationLists, .path, example: "/etc/sluice/clients.crl",
            """
            PEM or DER files with the current revocation lists (RFC 5280) of every authority in a client's chain, up \
            to the root in `client-ca`; without them revocation is not checked. The handshake fails if a certificate \
            is revoked, or an authority has no list or only one past its `nextUpdate`. A reload reads the files again.
            """),
        .list(
            "alpn", \.alpn, .applicationProtocol, example: "[http/1.1]",
            """
            ALPN protocols in order of preference; without them ALPN is not negotiated. A client that offers none of \
            them fails the handshake.
            """),
        .value("min-version", \.minimumVersion, .choice, example: #""1.3""#, "Lowest TLS version that is accepted."),
        .value(
            "records", \.records, .choice,
            """
            Implementation of the record layer of TLS 1.3 after the handshake, with the cipher suites of RFC 8446 \
            §9.1. `openssl` is OpenSSL's, 16 KiB for an idle connection. `compact` is our own on top of OpenSSL's \
            ciphers, 5 KiB, but it gets no fixes by updates of OpenSSL. A reload changes it for later connections.
            """),
        .optional(
            .keyLog, \.keyLog, .path, example: "/tmp/keys.log",
            """
            File to which session secrets are appended (NSS key log) to decrypt captured traffic; a new file has mode \
            0600. Everyone who can read it can read all traffic.
            """),
    ]

    /// The certificate that is not in the list.
    private var firstCertificate: CertificateFiles {
        get { self.certificates.first ?? .initial }
        set { self.certificates = [newValue] }
    }

    private mutating func readCertificates(_ section: SectionReader<ServerTLSSettings>) {
        if !section.has(.certificate) {
            section.has(.certificates) ? self.certificates = [] : section.require(.certificate)
        }
        guard section.has(.certificates) else { return }
        if !section.has(.certificate) {
            for key in ["key", "password", "password-file"] as [ServerTLSKey] where section.has(key) {
                section.add(
                    key, expected: "\(key.rawValue) beside the certificate it belongs to", remedy: "move it there")
            }
        }
        let further: [CertificateFiles] = section.sections(.certificates)
        if further.isEmpty { section.add(.certificates, expected: "at least one certificate") }
        self.certificates += further
    }

    mutating func check(_ section: SectionReader<ServerTLSSettings>) {
        if !section.isSet(.clientAuth) { self.clientAuthentication = section.has(.clientCA) ? .require : .none }
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

extension ClientTLSSettings: SettingsSection {
    static let sectionName = "ClientTLS"
    static let initial = ClientTLSSettings()
    static let keys: [SettingsKey<ClientTLSSettings>] =
        Self.trustKeys + SettingsKey.group(CertificateFiles.fileKeys(isRequired: false), \.clientCertificate)
        + Self.ownKeys

    private static let trustKeys: [SettingsKey<ClientTLSSettings>] = [
        .optional(
            .ca, \.authorities, .path, default: "the system's authorities", example: "/etc/sluice/internal-ca.pem",
            "PEM file of authorities trusted instead of the system's. Not together with `insecure`."),
        .list(
            .crl, \.revocationLists, .path, example: "[/etc/sluice/root.crl, /etc/sluice/issuing.crl]",
            """
            PEM or DER files with the current revocation lists (RFC 5280) of every authority in the chain; without \
            them revocation is not checked. The connection fails if a certificate is revoked, or an authority \
            has no current list. Not together with `insecure`.
            """),
    ]

    private static let ownKeys: [SettingsKey<ClientTLSSettings>] = [
        .optional(
            .serverName, \.serverName, .host, default: "the URL's host", example: "database.internal",
            "Host name for SNI and verification. Required over a Unix socket, unless `insecure` is set."),
        .value(
            .insecure, \.isInsecure, .boolean,
            """
            Accepts any certificate, for tests only: everyone on the path can read and change the data. Pins are still \
            checked.
            """),
        .list(
            "pins", \.pins, .publicKeyPin, example: "[sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=]",
            """
            SHA-256 of public keys, of which the endpoint's chain must contain one; otherwise the connection fails \
            (502). Checked besides the certificate.
            """),
        .list(
            "alpn", \.alpn, .applicationProtocol, default: "none towards streams, `http/1.1` towards WebSockets",
            example: "[postgresql]", "Application protocols offered."),
        .value("min-version", \.minimumVersion, .choice, example: #""1.3""#, "Lowest TLS version that is accepted."),
        .optional(
            .keyLog, \.keyLog, .path, example: "/tmp/keys.log",
            "File to which session secrets are appended (NSS key log), as for a listener."),
    ]

    private var clientCertificate: CertificateFiles {
        get { self.identity ?? .initial }
        set { self.identity = newValue }
    }

    private var isInsecure: Bool {
        get { !self.verifies }
        set { self.verifies = !newValue }
    }

    mutating func check(_ section: SectionReader<ClientTLSSettings>) {
        if !section.has(.certificate) {
            self.identity = nil
            if let orphan = (["key", "password", "password-file"] as [ClientTLSKey]).first(where: section.has) {
                section.add(
                    .certificate, expected: "the certificate that \(orphan.rawValue) belongs to", found: "nothing",
                    remedy: "add certificate: FILE")
            }
        }
        let conflicts = [(ClientTLSKey.ca, "authorities to trust"), (.crl, "revocation lists to check")]
        if self.isInsecure, let (_, purpose) = conflicts.first(where: { section.has($0.0) }) {
            section.add(
                .insecure, expected: "either \(purpose) or insecure: true", remedy: "leave out one of the two")
        }
    }
}
