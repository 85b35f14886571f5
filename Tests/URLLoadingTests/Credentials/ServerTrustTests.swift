import Foundation
import TLSEngine
import TestSupport
import Testing
import URLLoading

@Suite("Server trust")
struct ServerTrustTests {
    private func trust(_ code: Int32) -> ServerTrust {
        ServerTrust(
            VerificationRequest(
                peerChain: [[1, 2], [3]], result: VerificationResult(code: code, text: "words", depth: 0),
                serverName: "a.org"))
    }

    @Test func serverIsTrustedWhenTheVerdictIsGood() throws {
        let trust = self.trust(0)
        try trust.evaluate()
        #expect(trust.isTrusted && trust.host == "a.org" && trust.certificates == [Data([1, 2]), Data([3])])
    }

    @Test(
        arguments: [
            (9, URLError.Code.serverCertificateNotYetValid), (10, .serverCertificateHasBadDate),
            (18, .serverCertificateHasUnknownRoot), (19, .serverCertificateHasUnknownRoot),
            (20, .serverCertificateHasUnknownRoot), (62, .serverCertificateUntrusted),
            (-1, .serverCertificateUntrusted),
        ] as [(Int32, URLError.Code)])
    func trustErrorHasTheCodeOfTheLoad(_ code: Int32, _ expected: URLError.Code) throws {
        let trust = self.trust(code)
        #expect(!trust.isTrusted)
        let error = #expect(throws: URLError.self) { try trust.evaluate() }
        #expect(error?.code == expected && error?.localizedDescription == "words")
    }

    @Test func credentialAndSpaceCarryTheServerTrust() throws {
        let trust = self.trust(18)
        let space = URLProtectionSpace(host: "a.org", port: 443, protocol: NSURLProtectionSpaceHTTPS, trust: trust)
        let shown: SecTrust = try #require(space.serverTrust)
        let credential = URLCredential(trust: shown)
        #expect(credential.trust === trust && credential.persistence == .none && credential.user == nil)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust && space.distinguishedNames == nil)
        let error = URLError(.serverCertificateUntrusted, userInfo: [NSURLErrorFailingURLPeerTrustErrorKey: trust])
        #expect(error.failureURLPeerTrust === trust)
    }

    @Test func programsOwnAnchorsJudgeTheServer() throws {
        let authority = try Certificates.authority()
        let request = VerificationRequest(
            peerChain: [[UInt8](try Certificates.serverDER())],
            result: VerificationResult(code: 20, text: "words", depth: 0), serverName: "localhost")
        let trust = ServerTrust(request)
        #expect(throws: URLError.self) { try trust.evaluate() }
        try trust.evaluate(anchors: [Data(authority.pem.utf8)])
        try trust.evaluate(anchors: [Data(authority.certificate.der)], andSystemRoots: true)
        // Nothing is remembered.
        #expect(!trust.isTrusted)
        let other = Data(try TestCertificateAuthority("Other Root").pem.utf8)
        let error = #expect(throws: URLError.self) { try trust.evaluate(anchors: [other]) }
        #expect(error?.code == .serverCertificateHasUnknownRoot)
        let elsewhere = ServerTrust(
            VerificationRequest(
                peerChain: request.peerChain, result: request.result, serverName: "elsewhere.test"))
        let refusal = #expect(throws: URLError.self) {
            try elsewhere.evaluate(anchors: [Data(authority.pem.utf8)])
        }
        #expect(refusal?.code == .serverCertificateUntrusted)
        for anchors in [[], [Data("no certificate".utf8)]] as [[Data]] {
            #expect(throws: TLSFailure.self) { try trust.evaluate(anchors: anchors) }
        }
    }

    @Test func brokenMaterialIsAFailure() {
        #expect(throws: TLSFailure.self) { try ClientIdentity(pkcs12: Data([1, 2, 3])) }
        #expect(throws: TLSFailure.self) { try ClientIdentity(certificates: Data(), key: Data()) }
    }
}
