import Foundation
import TLSEngine

/// The answer to a challenge: a user name and password, a client identity, or the acceptance of a server. Immutable.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {  // Not final; immutable.
    /// How long a credential is stored.
    public enum Persistence: UInt, Sendable {
        /// Not stored.
        case none = 0
        /// In memory, until the process ends.
        case forSession = 1
        /// In a file.
        case permanent = 2
        /// In a file, like `permanent`: nothing is synchronized on Linux. Removing it needs an option.
        case synchronizable = 3
    }

    enum Content {
        case password(user: String, password: String?)
        case identity(ClientIdentity, certificates: [Any])
        case trust(ServerTrust)
    }

    let content: Content
    private let storedPersistence: Persistence

    open class var supportsSecureCoding: Bool { true }

    /// For Basic, Digest and similar schemes.
    public init(user: String, password: String, persistence: Persistence) {
        self.content = .password(user: user, password: password)
        self.storedPersistence = persistence
        super.init()
    }

    /// The user of a URL without a password, for the program to ask for that.
    init(user: String) {
        self.content = .password(user: user, password: nil)
        self.storedPersistence = .none
        super.init()
    }

    /// For a server that requests a client certificate.
    /// - Parameter certificates: only stored; the identity's own chain is sent.
    public init(identity: SecIdentity, certificates: [Any]?, persistence: Persistence) {
        self.content = .identity(identity, certificates: certificates ?? [])
        self.storedPersistence = persistence
        super.init()
    }

    /// Accepts the server of this trust.
    public init(trust: SecTrust) {
        self.content = .trust(trust)
        self.storedPersistence = .none
        super.init()
    }

    /// - Returns: `nil` if the archive has no user name and password; other credentials cannot be archived.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding, let user = ResponseArchive.text("user", in: coder),
            let password = ResponseArchive.text("password", in: coder)
        else { return nil }
        self.content = .password(user: user, password: password)
        let persistence = UInt(exactly: coder.decodeInt64(forKey: "persistence"))
        self.storedPersistence = persistence.flatMap(Persistence.init) ?? .none
        super.init()
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.user.map { NSString(string: $0) }, forKey: "user")
        coder.encode(self.password.map { NSString(string: $0) }, forKey: "password")
        coder.encode(Int64(self.storedPersistence.rawValue), forKey: "persistence")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var persistence: Persistence { self.storedPersistence }

    open var user: String? {
        if case .password(let user, _) = self.content { user } else { nil }
    }

    open var password: String? {
        if case .password(_, let password) = self.content { password } else { nil }
    }

    /// Also `true` for an empty password.
    open var hasPassword: Bool { self.password != nil }

    open var identity: SecIdentity? {
        if case .identity(let identity, _) = self.content { identity } else { nil }
    }

    /// Empty without an identity.
    open var certificates: [Any] {
        if case .identity(_, let certificates) = self.content { certificates } else { [] }
    }

    package var trust: ServerTrust? {
        if case .trust(let trust) = self.content { trust } else { nil }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLCredential else { return false }
        return other === self
            || other.storedPersistence == self.storedPersistence && other.user == self.user
                && other.password == self.password
                && other.identity === self.identity && other.trust === self.trust
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.user)
        hasher.combine(self.password)
        hasher.combine(self.storedPersistence)
        return hasher.finalize()
    }

    /// Does not contain the password.
    open override var description: String { "<URLCredential: \(self.user ?? "without a user")>" }
}

/// Replaces `SecIdentity`, which does not exist on Linux.
public typealias SecIdentity = ClientIdentity

/// Replaces `SecTrust`, which does not exist on Linux.
public typealias SecTrust = ServerTrust

/// A client certificate with its chain and private key. It has the role of `SecIdentity`.
public final class ClientIdentity: Sendable {
    package let identity: TLSIdentity

    /// - Parameters:
    ///   - certificates: PEM text, the client's certificate first, then its chain; or DER of one certificate.
    ///   - key: PEM or DER.
    ///   - password: for an encrypted key.
    /// - Throws: a `TLSFailure` if the data cannot be read or the key does not match the certificate.
    public init(certificates: Data, key: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(certificates: [UInt8](certificates), key: [UInt8](key), password: password)
    }

    /// - Parameter pkcs12: a container with the certificate, its chain and its key.
    /// - Throws: a `TLSFailure` if the container cannot be read or the password is wrong.
    public init(pkcs12: Data, password: String? = nil) throws {
        self.identity = try TLSIdentity(pkcs12: [UInt8](pkcs12), password: password)
    }
}

/// A server's certificate chain, and its evaluation against the configured roots. It has the role of `SecTrust`.
///
/// Answer a challenge with `URLCredential(trust:)` to accept the server regardless of `evaluate()`. A program with its own
/// roots calls `evaluate(anchors:)` first.
public final class ServerTrust: Sendable {
    /// The name or address to be verified.
    public let host: String?
    /// The chain as sent by the server, in DER, its own certificate first.
    public let certificates: [Data]
    private let request: VerificationRequest

    package init(_ request: VerificationRequest) {
        self.host = request.serverName
        self.certificates = request.peerChain.map { Data($0) }
        self.request = request
    }

    /// Whether the chain leads to a trusted root, is valid now, and matches the host and the pins, if any.
    public var isTrusted: Bool { self.request.result.isValid }

    /// - Throws: a `URLError` with the code that the load would fail with, and the reason in its description.
    public func evaluate() throws { try Self.require(self.request.result) }

    /// Verifies that the chain leads to one of these anchors, is valid now, and matches the host. Pins, and the session's
    /// own evaluation, are ignored.
    ///
    /// Callable repeatedly from any thread; the result is not stored.
    /// - Parameters:
    ///   - anchors: certificates, each as PEM text with one or more of them, or as DER of one. Intermediates and the
    ///     server's own certificate are valid anchors.
    ///   - andSystemRoots: whether the system's roots are trusted too.
    /// - Throws: a `URLError` with the code that a load would fail with; a `TLSFailure` if anchors cannot be read or are
    ///   missing.
    public func evaluate(anchors: [Data], andSystemRoots: Bool = false) throws {
        guard andSystemRoots || !anchors.isEmpty else {
            throw TLSFailure(.unreadableCredentials, reasons: ["no trust anchors given"])
        }
        let sources = anchors.map { CertificateSource.pem([UInt8]($0)) }
        try Self.require(self.request.evaluate(against: andSystemRoots ? .systemAnd(sources) : .only(sources)))
    }

    private static func require(_ result: VerificationResult) throws {
        guard !result.isValid else { return }
        throw URLError(self.failure(result.code), userInfo: [NSLocalizedDescriptionKey: result.description])
    }

    /// - Parameter code: an `X509_V_ERR_…` code of OpenSSL.
    package static func failure(_ code: Int32) -> URLError.Code {
        switch code {
        case 9: .serverCertificateNotYetValid
        case 10: .serverCertificateHasBadDate
        case 2, 18, 19, 20, 21, 27: .serverCertificateHasUnknownRoot
        default: .serverCertificateUntrusted
        }
    }
}
