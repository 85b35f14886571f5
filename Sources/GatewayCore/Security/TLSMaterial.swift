import GatewayConfiguration
import StreamTransport
import TLSEngine

/// Makes TLS contexts from what the configuration says, reading the files it names.
package enum TLSMaterial {
    private static let passwordFileLimit = 4096

    /// A listener's side.
    /// - Parameter log: gets a warning when the key log cannot be written.
    package static func configuration(
        _ settings: ServerTLSSettings, log: TunnelLog? = nil
    ) throws(GatewayPlanError) -> TLSConfiguration {
        var identities: [TLSIdentity] = []
        for files in settings.certificates { identities.append(try Self.identity(files)) }
        var configuration = TLSConfiguration.server(identities)
        configuration.minimumVersion = settings.minimumVersion.version
        configuration.applicationProtocols = settings.alpn
        configuration.recordLayer = settings.records.layer
        if let path = settings.clientCA {
            configuration.trust = .only([.file(path)])
            configuration.peerVerification = settings.clientAuthentication == .require ? .required : .optional
            configuration.revocation = Self.revocation(settings.clientRevocationLists)
        }
        configuration.keyLog = settings.keyLog.map { Self.keyLog($0, log) }
        return configuration
    }

    /// An upstream's side.
    /// - Parameter log: gets a warning when the key log cannot be written.
    package static func configuration(
        _ settings: ClientTLSSettings, speaksWebSocket: Bool, log: TunnelLog? = nil
    ) throws(GatewayPlanError) -> TLSConfiguration {
        var configuration = TLSConfiguration.client()
        configuration.minimumVersion = settings.minimumVersion.version
        configuration.applicationProtocols = settings.alpn.isEmpty && speaksWebSocket ? ["http/1.1"] : settings.alpn
        if let path = settings.authorities { configuration.trust = .only([.file(path)]) }
        configuration.revocation = Self.revocation(settings.revocationLists)
        if let files = settings.identity { configuration.identities = [try Self.identity(files)] }
        configuration.pins = Set(settings.pins.compactMap { TLSEngine.PublicKeyPin(digest: $0.digest) })
        if !settings.verifies { configuration.peerVerification = .none }
        configuration.keyLog = settings.keyLog.map { Self.keyLog($0, log) }
        return configuration
    }

    private static func keyLog(_ path: String, _ log: TunnelLog?) -> KeyLog {
        .file(path) {
            log?.log("\(path): a line of the key log could not be written; it may lack secrets", level: .warning)
        }
    }

    private static func revocation(_ lists: [String]) -> RevocationChecking {
        lists.isEmpty ? .off : .wholeChain(lists: lists.map { .file($0) })
    }

    package static func context(_ configuration: TLSConfiguration) throws(GatewayPlanError) -> TLSContext {
        do throws(TLSFailure) {
            return try TLSContext(configuration)
        } catch {
            throw GatewayPlanError(.tls(error))
        }
    }

    /// A certificate with its key, to be shown for the names that the configuration gives it.
    static func identity(_ files: CertificateFiles) throws(GatewayPlanError) -> TLSIdentity {
        let identity = try self.material(files)
        return files.serverNames.isEmpty ? identity : identity.withServerNames(files.serverNames.map(\.description))
    }

    private static func material(_ files: CertificateFiles) throws(GatewayPlanError) -> TLSIdentity {
        let password = try files.password.map { (password) throws(GatewayPlanError) in try Self.text(of: password) }
        do throws(TLSFailure) {
            if files.certificate.hasSuffix(".p12") || files.certificate.hasSuffix(".pfx") {
                return try TLSIdentity(pkcs12File: files.certificate, password: password)
            }
            return try TLSIdentity(
                certificateFile: files.certificate, keyFile: files.key ?? files.certificate, password: password)
        } catch {
            throw GatewayPlanError(.tls(error))
        }
    }

    /// The password itself, read from its file where it has one.
    package static func text(of password: KeyPassword) throws(GatewayPlanError) -> String {
        switch password {
        case .text(let text): return text
        case .file(let path):
            do throws(SystemError) {
                let bytes = try SystemFile.read(path, limit: Self.passwordFileLimit)
                return String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
            } catch {
                throw GatewayPlanError(.file(path, error))
            }
        }
    }
}

extension MinimumTLSVersion {
    var version: TLSVersion {
        switch self {
        case .tls12: .tls12
        case .tls13: .tls13
        }
    }
}

extension ServerTLSSettings.Records {
    fileprivate var layer: TLSRecordLayer {
        switch self {
        case .openssl: .openSSL
        case .compact: .compact
        }
    }
}
