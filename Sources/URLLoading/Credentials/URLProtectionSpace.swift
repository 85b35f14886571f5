import Foundation

/// A server, or a part of it, that asks for credentials: where the same ones will do. It does not change once made.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    struct Facts: Hashable, Sendable {
        var host: String
        var port: Int
        var `protocol`: String?
        var proxyType: String?
        var realm: String?
        var method: String
    }

    private static let methods: Set<String> = [
        NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
        NSURLAuthenticationMethodHTMLForm, NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
        NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust,
    ]

    private(set) var facts: Facts
    private var issuers: [Data]?
    private var trust: ServerTrust?

    open class var supportsSecureCoding: Bool { true }

    /// - Parameters:
    ///   - protocol: one of the `NSURLProtectionSpace` constants, or a scheme.
    ///   - authenticationMethod: one of the constants; anything else, `nil` too, means the default.
    public init(host: String, port: Int, `protocol`: String?, realm: String?, authenticationMethod: String?) {
        self.facts = Facts(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: realm,
            method: Self.method(authenticationMethod))
        super.init()
    }

    /// The space of a proxy.
    /// - Parameter type: one of the constants of proxies.
    public init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
        self.facts = Facts(
            host: host, port: port, protocol: nil, proxyType: type ?? NSURLProtectionSpaceHTTPProxy, realm: realm,
            method: Self.method(authenticationMethod))
        super.init()
    }

    convenience init(_ facts: Facts, distinguishedNames: [Data]? = nil, serverTrust: ServerTrust? = nil) {
        self.init(host: facts.host, port: facts.port, protocol: nil, realm: nil, authenticationMethod: nil)
        self.facts = facts
        self.issuers = distinguishedNames
        self.trust = serverTrust
    }

    /// The space of a TLS handshake.
    package convenience init(host: String, port: Int, `protocol`: String, trust: ServerTrust) {
        let facts = Facts(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: nil,
            method: NSURLAuthenticationMethodServerTrust)
        self.init(facts, serverTrust: trust)
    }

    /// The space of a server that asks for our certificate.
    /// - Parameter issuers: of whom it accepts certificates, as DER; empty for anybody.
    package convenience init(host: String, port: Int, `protocol`: String, issuers: [Data]) {
        let facts = Facts(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: nil,
            method: NSURLAuthenticationMethodClientCertificate)
        self.init(facts, distinguishedNames: issuers)
    }

    /// Inherited by a subclass that overrides both designated initializers.
    public required convenience init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding, let host = ResponseArchive.text("host", in: coder) else { return nil }
        self.init(
            Facts(
                host: host, port: Int(clamping: coder.decodeInt64(forKey: "port")),
                protocol: ResponseArchive.text("protocol", in: coder),
                proxyType: ResponseArchive.text("proxyType", in: coder),
                realm: ResponseArchive.text("realm", in: coder),
                method: Self.method(ResponseArchive.text("authenticationMethod", in: coder))))
    }

    open func encode(with coder: NSCoder) {
        let texts = [
            "host": self.facts.host, "protocol": self.facts.protocol, "proxyType": self.facts.proxyType,
            "realm": self.facts.realm, "authenticationMethod": self.facts.method,
        ]
        for (key, text) in texts { coder.encode(text.map { NSString(string: $0) }, forKey: key) }
        coder.encode(Int64(self.facts.port), forKey: "port")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var host: String { self.facts.host }
    open var port: Int { self.facts.port }
    /// `nil` for a proxy.
    open var `protocol`: String? { self.facts.protocol }
    /// `nil` but for a proxy.
    open var proxyType: String? { self.facts.proxyType }
    open var realm: String? { self.facts.realm }
    open var authenticationMethod: String { self.facts.method }
    open override func isProxy() -> Bool { self.facts.proxyType != nil }
    /// Of whom the server accepts certificates: X.501 names as DER. `nil` where it did not ask for one.
    open var distinguishedNames: [Data]? { self.issuers }
    /// What the server showed. `nil` but for `NSURLAuthenticationMethodServerTrust`.
    open var serverTrust: SecTrust? { self.trust }

    /// Whether a credential for this space is safe from those on the way.
    open var receivesCredentialSecurely: Bool {
        if [NSURLProtectionSpaceHTTPS, "https", NSURLProtectionSpaceHTTPSProxy].contains(
            self.facts.protocol ?? self.facts.proxyType)
        {
            return true
        }
        return ![
            NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTMLForm,
        ].contains(self.facts.method)
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLProtectionSpace else { return false }
        return other === self
            || other.facts == self.facts && other.issuers == self.issuers && other.trust === self.trust
    }

    open override var hash: Int { self.facts.hashValue }

    open override var description: String {
        let place = "Host:\(self.host), Server:\(self.protocol ?? "(null)"), Auth-Scheme:\(self.authenticationMethod)"
        let proxy = "Proxy:\(self.isProxy() ? "YES" : "NO"), Proxy-Type:\(self.proxyType ?? "(null)")"
        let address = String(UInt(bitPattern: ObjectIdentifier(self).hashValue), radix: 16)
        return
            "<\(type(of: self)) 0x\(address)>: \(place), Realm:\(self.realm ?? "(null)"), Port:\(self.port), \(proxy)"
    }

    private static func method(_ name: String?) -> String {
        name.flatMap { self.methods.contains($0) ? $0 : nil } ?? NSURLAuthenticationMethodDefault
    }
}

/// Protocols of a protection space: the schemes, so that a space that a program makes with either is the same.
public let NSURLProtectionSpaceHTTP = "http"
public let NSURLProtectionSpaceHTTPS = "https"
public let NSURLProtectionSpaceFTP = "ftp"

/// Types of a proxy.
public let NSURLProtectionSpaceHTTPProxy = "NSURLProtectionSpaceHTTPProxy"
public let NSURLProtectionSpaceHTTPSProxy = "NSURLProtectionSpaceHTTPSProxy"
public let NSURLProtectionSpaceFTPProxy = "NSURLProtectionSpaceFTPProxy"
public let NSURLProtectionSpaceSOCKSProxy = "NSURLProtectionSpaceSOCKSProxy"

/// The protocol's own method.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// RFC 7617. Asked of the task.
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// RFC 7616. Asked of the task.
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// Never asked by the loader.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// Asked of the session.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Asked of the session.
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// Asked of the session.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// Asked of the session, at every TLS handshake.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// Among the options of `URLCredentialStorage.remove(_:for:options:)`: `true` lets synchronizable credentials be taken
/// away.
public let NSURLCredentialStorageRemoveSynchronizableCredentials =
    "NSURLCredentialStorageRemoveSynchronizableCredentials"
