/// Checks the files named in a configuration, at start and before a reload, so that a missing certificate is reported
/// before any listener opens.
package struct FileAudit {
    /// Checks one file; `nil` if it is usable. The file is neither kept open nor written.
    package typealias FileChecker = (_ path: String, _ use: FileUse) -> FileProblem?

    /// A file and the path of the value that names it.
    package struct NamedFile: Sendable, Equatable {
        package let path: String
        package let use: FileUse
        package let keyPath: ConfigurationKeyPath
    }

    private let check: FileChecker

    package init(check: @escaping FileChecker) {
        self.check = check
    }

    /// Problems with the files of `located`, each at the value that names the file.
    package func problems(in located: LocatedConfiguration) -> [ConfigurationProblem] {
        Self.files(of: located).compactMap { file in
            self.check(file.path, file.use).map { problem in
                located.problem(
                    at: file.keyPath,
                    expected: file.use == .read ? "a file that can be read" : "a file that can be written",
                    found: "\(problem.summary) at \(QuotedText.quoted(file.path))",
                    remedy: "check the path and its permissions for the user that sluice runs as")
            }
        }
    }

    /// All files named in a configuration.
    package static func files(of located: LocatedConfiguration) -> [NamedFile] {
        let listeners = located.configuration.listeners.enumerated().flatMap { index, listener in
            let path = ConfigurationValidator.listeners.index(index).key(ListenerKey.tls)
            return listener.tls.map { self.files(of: $0, at: path, in: located) } ?? []
        }
        let upstreams = located.configuration.upstreams.enumerated().flatMap { index, upstream in
            self.files(of: upstream.tls, at: ConfigurationValidator.upstreams.index(index).key(UpstreamKey.tls))
                + self.files(
                    of: upstream.proxy, at: ConfigurationValidator.upstreams.index(index).key(UpstreamKey.proxy))
        }
        let control = located.configuration.control.tls.map { tls in
            self.files(of: tls, at: ConfigurationValidator.control.key(ControlKey.tls), in: located)
        }
        return self.files(of: located.configuration.control.transfers) + listeners + upstreams + (control ?? [])
    }

    private static func files(of proxy: UpstreamProxy?, at path: ConfigurationKeyPath) -> [NamedFile] {
        guard case .file(let file)? = proxy?.password else { return [] }
        return [self.file(file, .read, path.key(ProxyKey.passwordFile))].compactMap { $0 }
    }

    private static func files(of transfers: TransferSettings) -> [NamedFile] {
        let list = ConfigurationKeyPath.root.key(GatewayKey.control).key(ControlKey.transfers).key(
            TransferKey.credentials)
        return transfers.credentials.enumerated().compactMap { index, credential in
            switch credential.secret {
            case .password(_, .file(let path)):
                self.file(path, .read, list.index(index).key(TransferCredentialKey.passwordFile))
            case .token(.file(let path)): self.file(path, .read, list.index(index).key(TransferCredentialKey.tokenFile))
            case .password(_, .text), .token(.text): nil
            }
        }
    }

    private static func files(
        of tls: ServerTLSSettings, at path: ConfigurationKeyPath, in located: LocatedConfiguration
    ) -> [NamedFile] {
        zip(tls.certificates, self.certificateKeyPaths(of: tls, at: path, in: located)).flatMap {
            self.files(of: $0, at: $1)
        }
            + [self.file(tls.clientCA, .read, path.key(ServerTLSKey.clientCA))].compactMap { $0 }
            + self.files(tls.clientRevocationLists, at: path.key(ServerTLSKey.clientCRL))
            + [self.file(tls.keyLog, .append, path.key(ServerTLSKey.keyLog))].compactMap { $0 }
    }

    /// Paths of the certificates of `tls`: the one in `tls` itself, then those of the list `certificates`.
    package static func certificateKeyPaths(
        of tls: ServerTLSSettings, at path: ConfigurationKeyPath, in located: LocatedConfiguration
    ) -> [ConfigurationKeyPath] {
        let hasOwnCertificate = located.isPresent(path.key(ServerTLSKey.certificate))
        return (hasOwnCertificate ? [path] : [])
            + tls.certificates.indices.map { path.key(ServerTLSKey.certificates).index($0) }
    }

    private static func files(of tls: ClientTLSSettings, at path: ConfigurationKeyPath) -> [NamedFile] {
        (tls.identity.map { self.files(of: $0, at: path) } ?? [])
            + [self.file(tls.authorities, .read, path.key(ClientTLSKey.ca))].compactMap { $0 }
            + self.files(tls.revocationLists, at: path.key(ClientTLSKey.crl))
            + [self.file(tls.keyLog, .append, path.key(ClientTLSKey.keyLog))].compactMap { $0 }
    }

    private static func files(of files: CertificateFiles, at path: ConfigurationKeyPath) -> [NamedFile] {
        var password: String?
        if case .file(let path) = files.password { password = path }
        return [
            self.file(files.certificate, .read, path.key(CertificateKey.certificate)),
            self.file(files.key, .read, path.key(CertificateKey.key)),
            self.file(password, .read, path.key(CertificateKey.passwordFile)),
        ].compactMap { $0 }
    }

    private static func files(_ paths: [String], at list: ConfigurationKeyPath) -> [NamedFile] {
        paths.enumerated().map { NamedFile(path: $1, use: .read, keyPath: list.index($0)) }
    }

    private static func file(_ path: String?, _ use: FileUse, _ keyPath: ConfigurationKeyPath) -> NamedFile? {
        path.map { NamedFile(path: $0, use: use, keyPath: keyPath) }
    }
}

/// Purpose of a file named in a configuration.
package enum FileUse: Sendable, Equatable {
    /// It must exist and be readable.
    case read
    /// It is appended to, and created if it is missing.
    case append
}

/// Why a file named in a configuration cannot be used.
package enum FileProblem: Sendable, Equatable {
    case missing
    case notPermitted
    /// A directory, device or pipe.
    case notAFile
    /// Any other error, in the system's words.
    case other(String)

    /// To be read after "found".
    package var summary: String {
        switch self {
        case .missing: "no such file"
        case .notPermitted: "a file without the required permissions"
        case .notAFile: "something other than a regular file"
        case .other(let text): text
        }
    }
}
