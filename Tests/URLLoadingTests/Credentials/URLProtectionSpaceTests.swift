import Foundation
import Testing
import URLLoading

@Suite("Protection spaces")
struct URLProtectionSpaceTests {
    private static func space(
        _ host: String = "apple.com", port: Int = 80, protocol name: String? = NSURLProtectionSpaceHTTP,
        realm: String? = nil, method: String? = nil
    ) -> URLProtectionSpace {
        URLProtectionSpace(host: host, port: port, protocol: name, realm: realm, authenticationMethod: method)
    }

    @Test func protectionSpaceHasItsInitialValues() {
        let space = Self.space(realm: "r", method: NSURLAuthenticationMethodHTTPDigest)
        #expect(space.host == "apple.com" && space.port == 80 && space.protocol == NSURLProtectionSpaceHTTP)
        #expect(space.realm == "r" && space.authenticationMethod == NSURLAuthenticationMethodHTTPDigest)
        #expect(!space.isProxy() && space.proxyType == nil && space.serverTrust == nil)
        let proxy = URLProtectionSpace(
            proxyHost: "p", port: 3128, type: NSURLProtectionSpaceSOCKSProxy, realm: nil, authenticationMethod: nil)
        #expect(proxy.isProxy() && proxy.proxyType == NSURLProtectionSpaceSOCKSProxy && proxy.protocol == nil)
        #expect(proxy.authenticationMethod == NSURLAuthenticationMethodDefault)
    }

    @Test(arguments: [("basic", "NSURLAuthenticationMethodDefault"), (NSURLAuthenticationMethodHTMLForm, nil)])
    func spaceHasADescription(_ method: String, _ shown: String?) {
        let space = Self.space(protocol: "http", method: method)
        #expect(space.description.hasPrefix("<\(type(of: space))"))
        #expect(
            space.description.hasSuffix(
                ": Host:apple.com, Server:http, Auth-Scheme:\(shown ?? method), Realm:(null), Port:80, "
                    + "Proxy:NO, Proxy-Type:(null)"))
    }

    @Test func spacesAreEqualWhenAllPartsAre() {
        #expect(Self.space() == Self.space() && Self.space().hash == Self.space().hash)
        let variants = [
            Self.space(), Self.space("b"), Self.space(port: 81), Self.space(protocol: nil), Self.space(realm: "r"),
            Self.space(method: NSURLAuthenticationMethodNTLM),
            URLProtectionSpace(proxyHost: "apple.com", port: 80, type: nil, realm: nil, authenticationMethod: nil),
            URLProtectionSpace(host: "apple.com", port: 80, protocol: "https", issuers: []),
            URLProtectionSpace(host: "apple.com", port: 80, protocol: "https", issuers: [Data([1])]),
        ]
        #expect(Set(variants).count == variants.count)
    }

    @Test func protectionSpaceReportsSecureTransmission() {
        #expect(Self.space(protocol: NSURLProtectionSpaceHTTPS).receivesCredentialSecurely)
        #expect(Self.space(protocol: "https").receivesCredentialSecurely && !Self.space().receivesCredentialSecurely)
        #expect(!Self.space(method: NSURLAuthenticationMethodHTTPBasic).receivesCredentialSecurely)
        #expect(Self.space(method: NSURLAuthenticationMethodHTTPDigest).receivesCredentialSecurely)
    }

    @Test func protectionSpaceHasDistinguishedNames() {
        let space = URLProtectionSpace(host: "a", port: 443, protocol: "https", issuers: [Data([1])])
        #expect(space.distinguishedNames == [Data([1])] && Self.space().distinguishedNames == nil)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodClientCertificate)
    }

    @Test func spaceIsDecodedFromAnArchive() throws {
        let space = Self.space(realm: "", method: NSURLAuthenticationMethodHTTPBasic)
        let data = try NSKeyedArchiver.archivedData(withRootObject: space, requiringSecureCoding: true)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLProtectionSpace.self, from: data)
        #expect(back == space && space.isEqual(space.copy()))
    }

    @Test func protectionSpaceConstantsHaveTheirValues() {
        let names = [
            NSURLProtectionSpaceHTTPProxy, NSURLProtectionSpaceHTTPSProxy, NSURLProtectionSpaceFTPProxy,
            NSURLProtectionSpaceSOCKSProxy,
            NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
            NSURLAuthenticationMethodHTMLForm, NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
            NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust,
        ]
        #expect(Set(names).count == 12 && names.allSatisfy { $0.hasPrefix("NSURL") })
        // Of protocols they are the schemes.
        let protocols = [NSURLProtectionSpaceHTTP, NSURLProtectionSpaceHTTPS, NSURLProtectionSpaceFTP]
        #expect(protocols == ["http", "https", "ftp"])
    }
}
