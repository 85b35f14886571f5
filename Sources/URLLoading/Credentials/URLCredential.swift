import Foundation

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
