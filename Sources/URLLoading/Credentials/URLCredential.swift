import Foundation
import TLSEngine

/// What answers a challenge: a user's name and password, an identity, or the acceptance of a server. It does not change
/// once made.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// How long a credential is kept.
    public enum Persistence: UInt, Sendable {
        /// Not at all.
        case none = 0
        /// As long as the process lives.
        case forSession = 1
        /// In a file.
        case permanent = 2
        /// In a file, like `permanent`: there is no account here that it could follow. Taking it away needs an option.
        case synchronizable = 3
    }

    enum Content {
        case password(user: String, password: String)
        case identity(ClientIdentity, certificates: [Any])
        case trust(ServerTrust)
    }

    let content: Content
    private let kept: Persistence

    open class var supportsSecureCoding: Bool { true }

    /// For Basic, Digest and the like.
    public init(user: String, password: String, persistence: Persistence) {
        self.content = .password(user: user, password: password)
        self.kept = persistence
        super.init()
    }

    /// For a server that asks for a certificate.
    /// - Parameter certificates: kept as given; the chain that is sent is the identity's own.
    public init(identity: SecIdentity, certificates: [Any]?, persistence: Persistence) {
        self.content = .identity(identity, certificates: certificates ?? [])
        self.kept = persistence
        super.init()
    }

    /// Accepts the server that showed this.
    public init(trust: SecTrust) {
        self.content = .trust(trust)
        self.kept = .none
        super.init()
    }

    /// - Returns: `nil` for an archive that holds no name and password: others cannot be archived.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding, let user = ResponseArchive.text("user", in: coder),
            let password = ResponseArchive.text("password", in: coder)
        else { return nil }
        self.content = .password(user: user, password: password)
        let persistence = UInt(exactly: coder.decodeInt64(forKey: "persistence"))
        self.kept = persistence.flatMap(Persistence.init) ?? .none
        super.init()
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.user.map { NSString(string: $0) }, forKey: "user")
        coder.encode(self.password.map { NSString(string: $0) }, forKey: "password")
        coder.encode(Int64(self.kept.rawValue), forKey: "persistence")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var persistence: Persistence { self.kept }

    open var user: String? {
        if case .password(let user, _) = self.content { user } else { nil }
    }

    open var password: String? {
        if case .password(_, let password) = self.content { password } else { nil }
    }

    /// Whether there is a password, be it an empty one.
    open var hasPassword: Bool { self.password != nil }

    open var identity: SecIdentity? {
        if case .identity(let identity, _) = self.content { identity } else { nil }
    }

    /// Empty for a credential without an identity.
    open var certificates: [Any] {
        if case .identity(_, let certificates) = self.content { certificates } else { [] }
    }

    package var trust: ServerTrust? {
        if case .trust(let trust) = self.content { trust } else { nil }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential else { return false }
        return other === self
            || other.kept == self.kept && other.user == self.user && other.password == self.password
                && other.identity === self.identity && other.trust === self.trust
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.user)
        hasher.combine(self.password)
        hasher.combine(self.kept)
        return hasher.finalize()
    }

    /// Never tells the password.
    open override var description: String { "<URLCredential: \(self.user ?? "without a user")>" }
}

/// The stand-in for `SecIdentity`.
public typealias SecIdentity = ClientIdentity

/// The stand-in for `SecTrust`.
public typealias SecTrust = ServerTrust

/// A certificate with its chain and private key, to be shown to servers that ask: the role of `SecIdentity`.
public final class ClientIdentity: Sendable {
    package let identity: TLSIdentity

    /// - Parameters:
    ///   - certificates: PEM text, our certificate first, then its chain; or DER of one certificate.
    ///   - key: PEM or DER.
    ///   - password: for an encrypted key.
    /// - Throws: a `TLSFailure` when the material cannot be read or the key is not the certificate's.
    public init(certificates: Data, key: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(certificates: [UInt8](certificates), key: [UInt8](key), password: password)
    }

    /// - Parameter pkcs12: a container with the certificate, its chain and its key.
    /// - Throws: a `TLSFailure` when the container cannot be read or the password is wrong.
    public init(pkcs12: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(pkcs12: [UInt8](pkcs12), password: password)
    }
}

/// What a server showed to prove who it is, and what the configured roots make of it: the role of `SecTrust`.
///
/// Answer a challenge with `URLCredential(trust:)` to accept the server whatever `evaluate()` says. A program with roots of
/// its own asks `evaluate(anchors:)` first.
public final class ServerTrust: Sendable {
    /// The name or address that was asked for.
    public let host: String?
    /// The chain as the server sent it, each certificate as DER, its own first.
    public let certificates: [Data]
    private let request: VerificationRequest

    package init(_ request: VerificationRequest) {
        self.host = request.serverName
        self.certificates = request.peerChain.map { Data($0) }
        self.request = request
    }

    /// Whether the chain leads to a trusted root, is valid today, and is for the host; pins count too where they are set.
    public var isTrusted: Bool { self.request.result.isValid }

    /// The verdict as an error.
    /// - Throws: a `URLError` with the code that the load would fail with; its description tells what is wrong.
    public func evaluate() throws { try Self.require(self.request.result) }

    /// Whether the chain leads to one of these roots, is valid today, and is for the host. Pins do not count, nor does
    /// what the session made of the chain.
    ///
    /// From any thread, as often as wanted: nothing is remembered.
    /// - Parameters:
    ///   - anchors: certificates, each as PEM text with one or more of them, or as DER of one. An intermediate, or the
    ///     server's own certificate, is one as good as a root.
    ///   - andSystemRoots: whether the system's roots count as well.
    /// - Throws: a `URLError` with the code that a load would fail with; a `TLSFailure` for anchors that cannot be read,
    ///   or of which there are none.
    public func evaluate(anchors: [Data], andSystemRoots: Bool = false) throws {
        guard andSystemRoots || !anchors.isEmpty else {
            throw TLSFailure(.unreadableCredentials, reasons: ["there are no anchors to verify by: give at least one"])
        }
        let sources = anchors.map { CertificateSource.pem([UInt8]($0)) }
        try Self.require(self.request.evaluate(against: andSystemRoots ? .systemAnd(sources) : .only(sources)))
    }

    private static func require(_ verdict: VerificationResult) throws {
        guard !verdict.isValid else { return }
        throw URLError(self.failure(verdict.code), userInfo: [NSLocalizedDescriptionKey: verdict.description])
    }

    /// The codes are those of `X509_verify_cert_error_string`.
    package static func failure(_ code: Int32) -> URLError.Code {
        switch code {
        case 9: .serverCertificateNotYetValid
        case 10: .serverCertificateHasBadDate
        case 2, 18, 19, 20, 21, 27: .serverCertificateHasUnknownRoot
        default: .serverCertificateUntrusted
        }
    }
}
