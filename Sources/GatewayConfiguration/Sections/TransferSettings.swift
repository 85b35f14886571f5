/// Permissions and limits of the HTTP transfers that the control plane makes.
package struct TransferSettings: Sendable, Equatable {
    /// Absolute paths of the directories whose files transfers may read and write; empty allows no files.
    package var directories: [String] = []
    /// Transfers stored, finished ones included; above it the one that ended first is removed. 1 to 10 000.
    package var maximumTransfers = 256
    /// Unfinished transfers. 1 to 1000.
    package var maximumRunning = 64
    /// Bytes of content that one transfer keeps in memory, for each direction; above it the transfer fails. 1 KiB to
    /// 1 GiB.
    package var maximumBody = 16 << 20
    /// Bytes of content that all transfers together keep in memory. 1 KiB to 16 GiB.
    package var maximumMemory = 64 << 20
    package var credentials: [TransferCredential] = []

    package init() {}

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

    package init(name: String, hosts: [HostPattern], secret: Secret) {
        self.name = name
        self.hosts = hosts
        self.secret = secret
    }

    /// - Parameter host: in any case, without port.
    package func isAllowed(for host: String) -> Bool {
        self.hosts.contains { $0.matches(host) }
    }
}

/// Keys of `control.transfers`.
package enum TransferKey: String, CaseIterable, Sendable {
    case directories
    case maxTransfers = "max-transfers"
    case maxRunning = "max-running"
    case maxBody = "max-body"
    case maxMemory = "max-memory"
    case credentials
}

/// Keys of an entry of `control.transfers.credentials`.
package enum TransferCredentialKey: String, CaseIterable, Sendable {
    case name
    case hosts
    case user
    case password
    case passwordFile = "password-file"
    case token
    case tokenFile = "token-file"
}

extension TransferSettings {
    init(reading section: SectionReader<TransferKey>) {
        self.init()
        section.readList(.directories, into: &self.directories, as: .path)
        for (index, path) in self.directories.enumerated() where !path.hasPrefix("/") {
            section.problems.add(
                at: section.path(.directories).index(index), expected: "an absolute path",
                found: QuotedText.quoted(path), remedy: "begin it with /")
        }
        section.read(.maxTransfers, into: &self.maximumTransfers, as: .integer(1...10_000))
        section.read(.maxRunning, into: &self.maximumRunning, as: .integer(1...1000))
        section.read(.maxBody, into: &self.maximumBody, as: .size(1024...(1 << 30)))
        section.read(.maxMemory, into: &self.maximumMemory, as: .size(1024...(16 << 30)))
        self.credentials = section.elements(.credentials, read: TransferCredential.init(reading:))
        self.rejectDuplicateNames(section)
    }

    private func rejectDuplicateNames(_ section: SectionReader<TransferKey>) {
        for (index, credential) in self.credentials.enumerated() where !credential.name.isEmpty {
            guard self.credentials.prefix(index).contains(where: { $0.name == credential.name }) else { continue }
            section.problems.add(
                at: section.path(.credentials).index(index).key("name"),
                expected: "a name that no other credential has", remedy: "choose another")
        }
    }
}

extension TransferCredential {
    init(reading section: SectionReader<TransferCredentialKey>) {
        let name = section.required(.name, as: .name) ?? ""
        var hosts: [HostPattern] = []
        section.readList(.hosts, into: &hosts, as: .hostPattern)
        if hosts.isEmpty, section.problems.isValid(section.path(.hosts)) {
            section.add(
                .hosts, expected: "the hosts that this credential may be sent to",
                remedy: "write them like hosts: [files.example]")
        }
        self.init(name: name, hosts: hosts, secret: Self.secret(section))
    }

    private static func secret(_ section: SectionReader<TransferCredentialKey>) -> Secret {
        let user = section.value(.user, as: ValueSyntax<String>.text)
        let password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        let token = KeyPassword(reading: section, text: .token, file: .tokenFile)
        switch (user, password, token) {
        case (let user?, let password?, nil): return .password(user: user, password)
        case (nil, nil, let token?): return .token(token)
        default:
            let isValid = TransferCredentialKey.allCases.allSatisfy { section.problems.isValid(section.path($0)) }
            if isValid {
                section.problems.add(
                    at: section.path, expected: "either a user with a password, or a token",
                    remedy: "add password-file: FILE beside user, or token-file: FILE alone")
            }
            return .token(.text(""))
        }
    }
}
