import GatewayConfiguration
import TLSEngine

/// Tries to build TLS contexts from the certificates, keys and lists that a configuration names, so that unusable ones
/// are reported at their place, together with all other problems, before anything listens.
package struct MaterialAudit {
    private let located: LocatedConfiguration
    /// Files already reported as unreadable; they are skipped.
    private let unreadable: Set<String>

    package init(_ located: LocatedConfiguration, except unreadable: Set<String> = []) {
        self.located = located
        self.unreadable = unreadable
    }

    /// Problems, each at the value that names the file. Key logs are not touched.
    package func problems() -> [ConfigurationProblem] {
        let configuration = self.located.configuration
        let control = configuration.control.tls.map {
            self.problems(of: $0, at: ConfigurationValidator.control.key(ControlKey.tls))
        }
        let tokens = configuration.tokens.enumerated().compactMap { index, settings in
            self.problem(with: settings, at: ConfigurationValidator.tokens.index(index))
        }
        let listeners = configuration.listeners.enumerated().flatMap { index, listener in
            let path = ConfigurationValidator.listeners.index(index).key(ListenerKey.tls)
            return listener.tls.map { self.problems(of: $0, at: path) } ?? []
        }
        let upstreams = configuration.upstreams.enumerated().flatMap { index, upstream in
            self.problems(of: upstream.tls, at: ConfigurationValidator.upstreams.index(index).key(UpstreamKey.tls))
        }
        let routes = configuration.routes.enumerated().compactMap { self.problem(withTargetsOf: $1, at: $0) }
        let cluster = configuration.cluster.map { self.problems(of: $0.tls, at: Self.clusterTLS) }
        return (control ?? []) + tokens + listeners + routes + upstreams + (cluster ?? [])
    }

    private func problem(withTargetsOf route: RouteConfiguration, at index: Int) -> ConfigurationProblem? {
        guard case .targets(let settings) = route.target, !self.unreadable.contains(settings.file) else { return nil }
        do throws(GatewayPlanError) {
            try TargetSource.check(settings)
            return nil
        } catch {
            return self.located.problem(
                at: FileAudit.targetsKeyPath(ofRoute: index, in: self.located),
                expected: "a file with lines NAME: HOST:PORT", found: "an unusable file: \(error)")
        }
    }

    private static let clusterTLS = ConfigurationKeyPath.root.key(GatewayKey.cluster).key(ClusterKey.tls)

    /// The one that is presented to Redis, which is read at the start only.
    package func clusterCertificate() -> PresentedCertificate? {
        self.located.configuration.cluster?.tls.identity.flatMap {
            self.certificate($0, at: Self.clusterTLS, needsRestart: true)
        }
    }

    /// The certificates that listeners, upstreams and the control plane present. Files that cannot be read are left to
    /// `problems()`.
    package func certificates() -> [PresentedCertificate] {
        let configuration = self.located.configuration
        let control = configuration.control.tls.map {
            self.certificates(of: $0, at: ConfigurationValidator.control.key(ControlKey.tls))
        }
        let listeners = configuration.listeners.enumerated().flatMap { index, listener in
            listener.tls.map {
                self.certificates(of: $0, at: ConfigurationValidator.listeners.index(index).key(ListenerKey.tls))
            } ?? []
        }
        let upstreams = configuration.upstreams.enumerated().compactMap { index, upstream in
            upstream.tls.identity.flatMap {
                self.certificate($0, at: ConfigurationValidator.upstreams.index(index).key(UpstreamKey.tls))
            }
        }
        return (control ?? []) + listeners + upstreams
    }

    private func certificates(of tls: ServerTLSSettings, at path: ConfigurationKeyPath) -> [PresentedCertificate] {
        zip(tls.certificates, FileAudit.certificateKeyPaths(of: tls, at: path, in: self.located))
            .compactMap { self.certificate($0, at: $1) }
    }

    private func certificate(
        _ files: CertificateFiles, at path: ConfigurationKeyPath, needsRestart: Bool = false
    ) -> PresentedCertificate? {
        (try? TLSMaterial.identity(files))?.validity.map {
            PresentedCertificate(
                file: files.certificate, validity: $0, located: self.located,
                keyPath: path.key(CertificateKey.certificate), needsRestart: needsRestart)
        }
    }

    private func problems(of tls: ServerTLSSettings, at path: ConfigurationKeyPath) -> [ConfigurationProblem] {
        let identities = zip(tls.certificates, FileAudit.certificateKeyPaths(of: tls, at: path, in: self.located))
            .compactMap {
                self.problem(with: $0, at: $1)
            }
        return identities + self.problems(authorities: tls.clientCA, at: path.key(ServerTLSKey.clientCA))
            + self.problems(lists: tls.clientRevocationLists, at: path.key(ServerTLSKey.clientCRL))
    }

    private func problems(of tls: ClientTLSSettings, at path: ConfigurationKeyPath) -> [ConfigurationProblem] {
        [tls.identity.flatMap { self.problem(with: $0, at: path) }].compactMap(\.self)
            + self.problems(authorities: tls.authorities, at: path.key(ClientTLSKey.ca))
            + self.problems(lists: tls.revocationLists, at: path.key(ClientTLSKey.crl))
    }

    private func problem(with settings: TokenSettings, at path: ConfigurationKeyPath) -> ConfigurationProblem? {
        let place: (key: TokenSettingsKey, file: String?, expected: String, remedy: String)
        let another =
            "create one of at least 32 bytes (openssl rand -base64 48), or set allow-short-secret if the issuer's cannot change"
        switch settings.keys {
        case .url: return nil
        case .secret(.text): place = (.secret, nil, "a secret for HS256", another)
        case .secret(.file(let file)): place = (.secretFile, file, "a secret for HS256", another)
        case .file(let file):
            place = (.keyFile, file, "keys that verify tokens", "give PEM with a public key, or a JSON Web Key Set")
        }
        if let file = place.file, self.unreadable.contains(file) { return nil }
        do throws(GatewayPlanError) {
            _ = try TokenSource.keys(of: settings)
            return nil
        } catch {
            return self.located.problem(
                at: path.key(place.key), expected: place.expected,
                found: "\(place.file == nil ? "an unusable one" : "an unusable file"): \(error)", remedy: place.remedy)
        }
    }

    // MARK: One file at a time

    private func problem(with files: CertificateFiles, at path: ConfigurationKeyPath) -> ConfigurationProblem? {
        var named = [files.certificate, files.key].compactMap(\.self)
        if case .file(let password) = files.password { named.append(password) }
        return self.problem(
            at: path.key(CertificateKey.certificate), naming: named, expected: "a certificate and its key",
            remedy: """
                give PEM or PKCS#12 with the key that belongs to it; if it is encrypted, name its password-file in a \
                configuration, or decrypt it with openssl pkey or openssl pkcs12
                """
        ) { () throws(GatewayPlanError) in
            .server([try TLSMaterial.identity(files)])
        }
    }

    private func problems(authorities file: String?, at path: ConfigurationKeyPath) -> [ConfigurationProblem] {
        guard let file else { return [] }
        let problem = self.problem(
            at: path, naming: [file], expected: "certificates of authorities", remedy: "give them in PEM"
        ) { () throws(GatewayPlanError) in
            var configuration = TLSConfiguration.client()
            configuration.trust = .only([.file(file)])
            return configuration
        }
        return [problem].compactMap(\.self)
    }

    private func problems(lists files: [String], at path: ConfigurationKeyPath) -> [ConfigurationProblem] {
        files.enumerated().compactMap { index, file in
            self.problem(
                at: path.index(index), naming: [file], expected: "revocation lists", remedy: "give them in PEM or DER"
            ) { () throws(GatewayPlanError) in
                var configuration = TLSConfiguration.client()
                configuration.revocation = .wholeChain(lists: [.file(file)])
                return configuration
            }
        }
    }

    private func problem(
        at path: ConfigurationKeyPath, naming files: [String], expected: String, remedy: String,
        _ make: () throws(GatewayPlanError) -> TLSConfiguration
    ) -> ConfigurationProblem? {
        guard self.unreadable.isDisjoint(with: files) else { return nil }
        do throws(GatewayPlanError) {
            _ = try TLSMaterial.context(try make())
            return nil
        } catch {
            return self.located.problem(
                at: path, expected: expected, found: "an unusable file: \(error)", remedy: remedy)
        }
    }
}
