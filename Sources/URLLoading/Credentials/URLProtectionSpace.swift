import Foundation

/// A server, or a part of it, that requires credentials: one credential is valid in the whole space. Immutable.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {  // Not final; immutable.
    struct Attributes: Hashable, Sendable {
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

    private(set) var attributes: Attributes
    private var issuers: [Data]?
    private var trust: ServerTrust?

    open class var supportsSecureCoding: Bool { true }

    /// - Parameters:
    ///   - protocol: one of the `NSURLProtectionSpace` constants, or a scheme.
    ///   - authenticationMethod: one of the constants; any other value means the default.
    public init(host: String, port: Int, `protocol`: String?, realm: String?, authenticationMethod: String?) {
        self.attributes = Attributes(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: realm,
            method: Self.method(authenticationMethod))
        super.init()
    }

    /// The space of a proxy.
    /// - Parameter type: one of the `NSURLProtectionSpace…Proxy` constants.
    public init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
        self.attributes = Attributes(
            host: host, port: port, protocol: nil, proxyType: type ?? NSURLProtectionSpaceHTTPProxy, realm: realm,
            method: Self.method(authenticationMethod))
        super.init()
    }

    convenience init(_ attributes: Attributes, distinguishedNames: [Data]? = nil, serverTrust: ServerTrust? = nil) {
        self.init(host: attributes.host, port: attributes.port, protocol: nil, realm: nil, authenticationMethod: nil)
        self.attributes = attributes
        self.issuers = distinguishedNames
        self.trust = serverTrust
    }

    /// The space of a TLS handshake.
    package convenience init(host: String, port: Int, `protocol`: String, trust: ServerTrust) {
        let attributes = Attributes(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: nil,
            method: NSURLAuthenticationMethodServerTrust)
        self.init(attributes, serverTrust: trust)
    }

    /// The space of a server that requests a client certificate.
    /// - Parameter issuers: DER names of the accepted issuers; empty means any.
    package convenience init(host: String, port: Int, `protocol`: String, issuers: [Data]) {
        let attributes = Attributes(
            host: host, port: port, protocol: `protocol`, proxyType: nil, realm: nil,
            method: NSURLAuthenticationMethodClientCertificate)
        self.init(attributes, distinguishedNames: issuers)
    }

    /// The space of a TLS handshake with a proxy.
    convenience init(of proxy: ProxyAddress, trust: ServerTrust) {
        self.init(Self.attributes(of: proxy, NSURLAuthenticationMethodServerTrust), serverTrust: trust)
    }

    /// The space of a proxy that requests a client certificate.
    /// - Parameter issuers: DER names of the accepted issuers; empty means any.
    convenience init(of proxy: ProxyAddress, issuers: [Data]) {
        self.init(
            Self.attributes(of: proxy, NSURLAuthenticationMethodClientCertificate), distinguishedNames: issuers)
    }

    private static func attributes(of proxy: ProxyAddress, _ method: String) -> Attributes {
        Attributes(
            host: proxy.host, port: Int(proxy.port), protocol: nil, proxyType: NSURLProtectionSpaceHTTPSProxy,
            realm: nil, method: method)
    }

    /// Inherited by a subclass that overrides both designated initializers.
    public required convenience init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding, let host = ResponseArchive.text("host", in: coder) else { return nil }
        self.init(
            Attributes(
                host: host, port: Int(clamping: coder.decodeInt64(forKey: "port")),
                protocol: ResponseArchive.text("protocol", in: coder),
                proxyType: ResponseArchive.text("proxyType", in: coder),
                realm: ResponseArchive.text("realm", in: coder),
                method: Self.method(ResponseArchive.text("authenticationMethod", in: coder))))
    }

    open func encode(with coder: NSCoder) {
        let texts = [
            "host": self.attributes.host, "protocol": self.attributes.protocol, "proxyType": self.attributes.proxyType,
            "realm": self.attributes.realm, "authenticationMethod": self.attributes.method,
        ]
        for (key, text) in texts { coder.encode(text.map { NSString(string: $0) }, forKey: key) }
        coder.encode(Int64(self.attributes.port), forKey: "port")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var host: String { self.attributes.host }
    open var port: Int { self.attributes.port }
    /// `nil` for a proxy.
    open var `protocol`: String? { self.attributes.protocol }
    /// `nil` unless it is a proxy.
    open var proxyType: String? { self.attributes.proxyType }
    open var realm: String? { self.attributes.realm }
    open var authenticationMethod: String { self.attributes.method }
    open override func isProxy() -> Bool { self.attributes.proxyType != nil }
    /// Accepted issuers of client certificates: X.501 names in DER. `nil` if none was requested.
    open var distinguishedNames: [Data]? { self.issuers }
    /// `nil` unless the method is `NSURLAuthenticationMethodServerTrust`.
    open var serverTrust: SecTrust? { self.trust }

    /// Whether credentials are sent encrypted or hashed.
    open var receivesCredentialSecurely: Bool {
        if [NSURLProtectionSpaceHTTPS, "https", NSURLProtectionSpaceHTTPSProxy].contains(
            self.attributes.protocol ?? self.attributes.proxyType)
        {
            return true
        }
        return ![
            NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTMLForm,
        ].contains(self.attributes.method)
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? URLProtectionSpace else { return false }
        return other === self
            || other.attributes == self.attributes && other.issuers == self.issuers && other.trust === self.trust
    }

    open override var hash: Int { self.attributes.hashValue }

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

/// Protocols of a protection space: equal to the URL schemes, so that spaces created with either are equal.
public let NSURLProtectionSpaceHTTP = "http"
public let NSURLProtectionSpaceHTTPS = "https"
public let NSURLProtectionSpaceFTP = "ftp"

/// Types of a proxy.
public let NSURLProtectionSpaceHTTPProxy = "NSURLProtectionSpaceHTTPProxy"
public let NSURLProtectionSpaceHTTPSProxy = "NSURLProtectionSpaceHTTPSProxy"
public let NSURLProtectionSpaceFTPProxy = "NSURLProtectionSpaceFTPProxy"
public let NSURLProtectionSpaceSOCKSProxy = "NSURLProtectionSpaceSOCKSProxy"

/// The default method of the protocol.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// RFC 7617. A challenge for the task's delegate method.
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// RFC 7616. A challenge for the task's delegate method.
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// Never used by the loader.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// A challenge for the session's delegate method.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// A challenge for the session's delegate method.
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// A challenge for the session's delegate method.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// A challenge for the session's delegate method, at each TLS handshake.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// Option of `URLCredentialStorage.remove(_:for:options:)`: `true` also removes synchronizable credentials.
public let NSURLCredentialStorageRemoveSynchronizableCredentials =
    "NSURLCredentialStorageRemoveSynchronizableCredentials"
