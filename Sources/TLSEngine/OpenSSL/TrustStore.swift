import COpenSSL

/// The roots and revocation lists of one context, read when it is created.
@safe
final class TrustStore {
    /// An owned X509_STORE.
    let handle: OpaquePointer
    /// Digest of everything that verification depends on: contexts with the same digest may resume each other's
    /// sessions.
    private(set) var digest: [UInt8] = []

    init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        sluice_openssl_start()
        ErrorQueue.clear()
        guard let handle = unsafe X509_STORE_new() else { throw ErrorQueue.failure(.engine, "no memory") }
        unsafe self.handle = handle
        var fingerprint: [UInt8] = Array(
            "\(configuration.peerVerification) \(configuration.delegatesVerification)".utf8)
        fingerprint.append(
            contentsOf: "\(configuration.checksServerName) \(configuration.pins.map(\.description).sorted())".utf8)
        if configuration.peerVerification != .none {
            fingerprint.append(contentsOf: "\(configuration.trust.includesSystem)".utf8)
            try self.addRoots(configuration.trust, fingerprint: &fingerprint)
        }
        try self.addRevocationLists(configuration.revocation, fingerprint: &fingerprint)
        self.digest = CertificateFields.sha256(fingerprint)
    }

    deinit {
        unsafe X509_STORE_free(self.handle)
    }

    private func addRoots(_ trust: TrustAnchors, fingerprint: inout [UInt8]) throws(TLSFailure) {
        if trust.includesSystem, unsafe !SystemRoots.add(to: self.handle) {
            throw TLSFailure(
                .unreadableCredentials, reasons: ["no trusted roots found in the usual paths of the system"])
        }
        for source in trust.extra {
            let reader = try source.reader()
            unsafe try reader.eachCertificate { certificate in
                unsafe X509_STORE_add_cert(self.handle, certificate)
                unsafe fingerprint.append(contentsOf: CertificateFields.derBytes(of: certificate))
            }
        }
    }

    private func addRevocationLists(_ revocation: RevocationChecking, fingerprint: inout [UInt8]) throws(TLSFailure) {
        for source in revocation.lists {
            let reader = try source.reader()
            unsafe try reader.eachRevocationList { list in
                unsafe X509_STORE_add_crl(self.handle, list)
                unsafe fingerprint.append(contentsOf: CertificateFields.derBytes(ofRevocationList: list))
            }
        }
    }
}

extension CertificateSource {
    func reader() throws(TLSFailure) -> CredentialReader {
        switch self {
        case .pem(let bytes), .der(let bytes): try CredentialReader(bytes: bytes)
        case .file(let path): try CredentialReader(file: path)
        }
    }
}

/// The paths of the system's trusted roots. OpenSSL has one compiled-in path, which is wrong if a program bundles its
/// own OpenSSL and runs on another distribution.
private enum SystemRoots {
    /// Bundles of Debian and Alpine, Fedora, openSUSE, RHEL, BSD and macOS.
    private static let files = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem", "/usr/local/etc/ssl/cert.pem",
    ]
    private static let directories = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/system/etc/security/cacerts"]

    /// Loads the roots from the first path that exists.
    /// - Returns: whether roots were loaded.
    static func add(to store: OpaquePointer) -> Bool {
        if let paths = Self.pathsOfEnvironment() {
            return paths.isEmpty ? false : unsafe Self.load(paths, into: store)
        }
        let defaultFile = unsafe X509_get_default_cert_file().map { unsafe String(cString: $0) }
        let defaultDirectory = unsafe X509_get_default_cert_dir().map { unsafe String(cString: $0) }
        let defaults = [defaultFile, defaultDirectory].compactMap(\.self).filter(Self.exists)
        if !defaults.isEmpty, unsafe Self.load(defaults, into: store) { return true }
        for path in Self.files + Self.directories where Self.exists(path) {
            if unsafe Self.load([path], into: store) { return true }
        }
        return false
    }

    /// The existing paths among those in SSL_CERT_FILE and SSL_CERT_DIR; `nil` if neither is set.
    private static func pathsOfEnvironment() -> [String]? {
        let names = unsafe [X509_get_default_cert_file_env(), X509_get_default_cert_dir_env()]
        let values = unsafe names.compactMap { name in
            unsafe sluice_environment(name).map { unsafe String(cString: $0) }
        }
        guard !values.isEmpty else { return nil }
        return values.flatMap { $0.split(separator: ":").map(String.init) }.filter(Self.exists)
    }

    private static func exists(_ path: String) -> Bool {
        unsafe sluice_path_exists(path) != 0
    }

    private static func load(_ paths: [String], into store: OpaquePointer) -> Bool {
        var loaded = false
        for path in paths {
            let status =
                unsafe sluice_path_is_directory(path) != 0
                ? unsafe X509_STORE_load_path(store, path) : unsafe X509_STORE_load_file(store, path)
            loaded = loaded || status == 1
        }
        ErrorQueue.clear()
        return loaded
    }
}
