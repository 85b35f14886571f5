/// Permissions and limits of the HTTP transfers that the control plane makes.
package struct TransferSettings: Sendable, Equatable {
    /// Absolute paths.
    package var directories: [String] = []
    package var maximumTransfers = 256
    package var maximumRunning = 64
    /// Bytes per transfer and direction.
    package var maximumBody = 16 << 20
    /// Bytes of all transfers.
    package var maximumMemory = 64 << 20
    /// Name of the background session that carries out what it can; `nil` for none.
    package var background: String?
    package var credentials: [TransferCredential] = []

    package func credential(named name: String) -> TransferCredential? {
        self.credentials.first { $0.name == name }
    }
}

/// A credential that transfers refer to by name; its secret is never shown.
package struct TransferCredential: Sendable, Equatable {
    package enum Secret: Sendable, Equatable {
        /// Sent when a server asks for it (Basic, Digest).
        case password(user: String, KeyPassword)
        /// Bearer token sent with each request (RFC 6750).
        case token(KeyPassword)
    }

    /// Unique among credentials; same syntax as a listener's name.
    package var name: String
    /// The only hosts to which it is sent, also after redirects.
    package var hosts: [HostPattern]
    package var secret: Secret

    /// - Parameter host: in any case, without port.
    package func isAllowed(for host: String) -> Bool {
        self.hosts.contains { $0.matches(host) }
    }
}

/// Keys of `control.transfers`.
package typealias TransferKey = SettingsKeyName<TransferSettings>

extension TransferKey {
    fileprivate static var directories: Self { "directories" }
    package static var credentials: Self { "credentials" }
}

/// Keys of an entry of `control.transfers.credentials`.
package typealias TransferCredentialKey = SettingsKeyName<TransferCredentialDraft>

extension TransferCredentialKey {
    fileprivate static var hosts: Self { "hosts" }
    package static var passwordFile: Self { "password-file" }
    package static var tokenFile: Self { "token-file" }
}

extension TransferSettings: SettingsSection {
    static let sectionName = "Transfer"
    static let initial = TransferSettings()
    static let keys: [SettingsKey<TransferSettings>] = [
        .list(
            .directories, \.directories, .path, example: "[/var/lib/sluice/files]",
            """
            Absolute paths of the directories whose files transfers may read and write, with all directories in them; \
            without any, transfers may use no files. Symbolic links in them are not followed.
            """),
        .value(
            "max-transfers", \.maximumTransfers, .integer(1...10_000),
            """
            Transfers stored, finished ones included. Above it the one that ended first is removed; if none has ended, \
            a new one is refused with 429.
            """),
        .value(
            "max-running", \.maximumRunning, .integer(1...1000),
            "Unfinished transfers, suspended ones included. Above it a new one is refused with 429."),
        .value(
            "max-body", \.maximumBody, .size(1024...(1 << 30)),
            """
            Content that one transfer keeps in memory: the body it sends, and what it receives without a destination. \
            A larger body is refused; a transfer that receives more fails.
            """),
        .value(
            "max-memory", \.maximumMemory, .size(1024...(16 << 30)),
            """
            Content that all transfers together keep in memory. Above it a new transfer with a body is refused with \
            429, and one that receives more fails.
            """),
        .optional(
            "background", \.background, .name, example: "edge", needsRestart: true,
            """
            Name under which transfers outlive the gateway: the daemon `sluice transferd` carries them out, and the \
            gateway of this user that starts with the same name shows and controls them again, by id. It has to be \
            unique among the user's gateways. These are downloads to a `destination` without a body, and uploads of a \
            `file`, without `credential`, `insecure`, `authorities` and `followRedirects: false`; all others end with \
            the gateway. Needs the package libsqlite3-0.
            """),
        .custom(
            .credentials, .list(.of(TransferCredentialDraft.self)),
            example: "[{name: mirror, hosts: [mirror.example], token-file: /etc/sluice/token}]",
            "Credentials that transfers refer to by name; their secrets are never shown."
        ) { section, settings in
            let drafts: [TransferCredentialDraft] = section.sections(.credentials)
            settings.credentials = drafts.map {
                TransferCredential(name: $0.name, hosts: $0.hosts, secret: $0.secret ?? .token(.text("")))
            }
        },
    ]

    mutating func check(_ section: SectionReader<TransferSettings>) {
        for (index, path) in self.directories.enumerated() where !path.hasPrefix("/") {
            section.problems.add(
                at: section.path(.directories).index(index), expected: "an absolute path",
                found: QuotedText.quoted(path), remedy: "begin it with /")
        }
        for (index, credential) in self.credentials.enumerated() where !credential.name.isEmpty {
            guard self.credentials.prefix(index).contains(where: { $0.name == credential.name }) else { continue }
            section.problems.add(
                at: section.path(.credentials).index(index).key("name"),
                expected: "a name that no other credential has", remedy: "choose another")
        }
    }
}

/// An entry of `control.transfers.credentials` as written.
package struct TransferCredentialDraft: SettingsSection {
    fileprivate var name = ""
    fileprivate var hosts: [HostPattern] = []
    private var user: String?
    private var password: KeyPassword?
    private var token: KeyPassword?

    static let sectionName = "TransferCredential"
    static let initial = TransferCredentialDraft()
    static let keys: [SettingsKey<TransferCredentialDraft>] =
        Self.hostKeys
        + KeyPassword.keys(
            "password", file: .passwordFile, \.password,
            "Password of `user`, for servers that ask for it (Basic, Digest)")
        + KeyPassword.keys(
            "token", file: .tokenFile, \.token, "Token sent with each request as `Authorization: Bearer`")

    private static let hostKeys: [SettingsKey<TransferCredentialDraft>] = [
        .required("name", \.name, .name, "Name for transfers, unique among credentials."),
        .list(
            .hosts, \.hosts, .hostPattern, default: "none; required", example: "[mirror.example]",
            """
            The only hosts to which the credential is sent, also after redirects; at least one. A transfer to another \
            host that names it is refused.
            """),
        .optional(
            "user", \.user, ValueSyntax<String>.text, example: "ada",
            "User name that belongs to the password. Requires `password` or `password-file`."),
    ]

    /// `nil` unless there is either a user with a password, or a token.
    fileprivate var secret: TransferCredential.Secret? {
        switch (self.user, self.password, self.token) {
        case (let user?, let password?, nil): .password(user: user, password)
        case (nil, nil, let token?): .token(token)
        default: nil
        }
    }

    mutating func check(_ section: SectionReader<TransferCredentialDraft>) {
        if self.hosts.isEmpty, section.problems.isValid(section.path(.hosts)) {
            section.add(
                .hosts, expected: "the hosts that this credential may be sent to",
                remedy: "write them like hosts: [files.example]")
        }
        if self.secret == nil, Self.keys.allSatisfy({ section.problems.isValid(section.path($0.name)) }) {
            section.problems.add(
                at: section.path, expected: "either a user with a password, or a token",
                remedy: "add password-file: FILE beside user, or token-file: FILE alone")
        }
    }
}
