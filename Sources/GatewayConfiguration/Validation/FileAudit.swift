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
                    expected: file.use.expectation,
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
            let path = ConfigurationValidator.upstreams.index(index)
            return self.files(of: upstream.tls, at: path.key(UpstreamKey.tls))
                + self.file(
                    upstream.proxy?.password?.file, at: path.key(UpstreamKey.proxy).key(ProxyKey.passwordFile))
        }
        let control = located.configuration.control.tls.map { tls in
            self.files(of: tls, at: ConfigurationValidator.control.key(ControlKey.tls), in: located)
        }
        let tokens = located.configuration.tokens.enumerated().flatMap { index, settings in
            self.files(of: settings.keys, at: ConfigurationValidator.tokens.index(index))
        }
        let cluster = located.configuration.cluster.map { settings in
            let path = ConfigurationKeyPath.root.key(GatewayKey.cluster)
            return self.files(of: settings.tls, at: path.key(ClusterKey.tls))
                + self.file(settings.password?.file, at: path.key(ClusterKey.passwordFile))
        }
        return self.files(of: located.configuration.control.transfers) + tokens + listeners
            + self.routeFiles(of: located) + upstreams + (control ?? []) + (cluster ?? [])
    }

    private static func files(of keys: TokenSettings.Keys, at path: ConfigurationKeyPath) -> [NamedFile] {
        switch keys {
        case .secret(let secret): self.file(secret.file, at: path.key(TokenSettingsKey.secretFile))
        case .file(let file): self.file(file, at: path.key(TokenSettingsKey.keyFile))
        case .url: []
        }
    }

    /// Directories of static files, and files of targets.
    private static func routeFiles(of located: LocatedConfiguration) -> [NamedFile] {
        located.configuration.routes.enumerated().flatMap { index, route -> [NamedFile] in
            switch route.target {
            case .files(let settings):
                let path = ConfigurationValidator.routes.index(index).key(RouteKey.files)
                let inner = path.key(FilesKey.directory)
                return self.file(settings.directory, .list, at: located.isPresent(inner) ? inner : path)
            case .targets(let settings):
                return self.file(settings.file, .readOrList, at: self.targetsKeyPath(ofRoute: index, in: located))
            case .upstream, .url, .echo, .chat, .rooms, .page, .roomEvents: return []
            }
        }
    }

    /// Path of the value that names a route's file of targets.
    package static func targetsKeyPath(
        ofRoute index: Int, in located: LocatedConfiguration
    ) -> ConfigurationKeyPath {
        let path = ConfigurationValidator.routes.index(index).key(RouteKey.targets)
        let inner = path.key(TargetsKey.file)
        return located.isPresent(inner) ? inner : path
    }

    private static func files(of transfers: TransferSettings) -> [NamedFile] {
        let list = ConfigurationKeyPath.root.key(GatewayKey.control).key(ControlKey.transfers).key(
            TransferKey.credentials)
        return transfers.credentials.enumerated().flatMap { index, credential in
            switch credential.secret {
            case .password(_, let password):
                self.file(password.file, at: list.index(index).key(TransferCredentialKey.passwordFile))
            case .token(let token): self.file(token.file, at: list.index(index).key(TransferCredentialKey.tokenFile))
            }
        }
    }

    private static func files(
        of tls: ServerTLSSettings, at path: ConfigurationKeyPath, in located: LocatedConfiguration
    ) -> [NamedFile] {
        zip(tls.certificates, self.certificateKeyPaths(of: tls, at: path, in: located)).flatMap {
            self.files(of: $0, at: $1)
        }
            + self.file(tls.clientCA, at: path.key(ServerTLSKey.clientCA))
            + self.files(tls.clientRevocationLists, at: path.key(ServerTLSKey.clientCRL))
            + self.file(tls.keyLog, .append, at: path.key(ServerTLSKey.keyLog))
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
            + self.file(tls.authorities, at: path.key(ClientTLSKey.ca))
            + self.files(tls.revocationLists, at: path.key(ClientTLSKey.crl))
            + self.file(tls.keyLog, .append, at: path.key(ClientTLSKey.keyLog))
    }

    private static func files(of files: CertificateFiles, at path: ConfigurationKeyPath) -> [NamedFile] {
        self.file(files.certificate, at: path.key(CertificateKey.certificate))
            + self.file(files.key, at: path.key(CertificateKey.key))
            + self.file(files.password?.file, at: path.key(CertificateKey.passwordFile))
    }

    private static func files(_ paths: [String], at list: ConfigurationKeyPath) -> [NamedFile] {
        paths.enumerated().map { NamedFile(path: $1, use: .read, keyPath: list.index($0)) }
    }

    /// No file if there is no `path`.
    private static func file(
        _ path: String?, _ use: FileUse = .read, at keyPath: ConfigurationKeyPath
    ) -> [NamedFile] {
        path.map { [NamedFile(path: $0, use: use, keyPath: keyPath)] } ?? []
    }
}

extension KeyPassword {
    fileprivate var file: String? { if case .file(let path) = self { path } else { nil } }
}

/// Purpose of a file named in a configuration.
package enum FileUse: Sendable, Equatable {
    /// It must exist and be readable.
    case read
    /// It is appended to, and created if it is missing.
    case append
    /// It must be a directory whose files can be opened.
    case list
    /// It must be a readable file, or a directory of such files.
    case readOrList

    /// To be read after "expected".
    fileprivate var expectation: String {
        switch self {
        case .read: "a file that can be read"
        case .append: "a file that can be written"
        case .list: "a directory that can be read"
        case .readOrList: "a file or directory that can be read"
        }
    }
}

/// Why a file named in a configuration cannot be used.
package enum FileProblem: Sendable, Equatable {
    case missing
    case notPermitted
    /// A directory, device or pipe.
    case notAFile
    case notADirectory
    /// The system's reason why it cannot be read, like a loop of symbolic links.
    case unusable(String)

    /// To be read after "found".
    package var summary: String {
        switch self {
        case .missing: "no such file"
        case .notPermitted: "a file without the required permissions"
        case .notAFile: "something other than a regular file"
        case .notADirectory: "something other than a directory"
        case .unusable(let reason): "a path that cannot be used (\(reason))"
        }
    }
}
