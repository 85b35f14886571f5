import Foundation
import Synchronization
import TLSEngine
import Testing
import TestSupport
import URLLoading

@Suite("Loading over TLS", .loading, .timeLimit(.minutes(20)))
struct SecureLoadingTests {
    @Test func everyNewConnectionChallengesServerTrust() async throws {
        let server = try await WebServer(
            tls: Certificates.server(), ["/": .text("hello"), "/last": .text("bye").closing])
        let recorder = DataRecorder(.trusting)
        let session = URLSession.test(recorder)
        for path in ["/", "/", "/last", "/"] { #expect(try await session.load(server.url(path)).status == 200) }
        // A resumed TLS session sends no certificate.
        let handshakes = (0..<server.connections).count { server.metadata($0)?.resumed == false }
        #expect(recorder.log.count("session challenge ServerTrust") == handshakes && server.connections == 2)
        let space = try #require(recorder.notes.challenges.first?.protectionSpace)
        #expect(space.host == "127.0.0.1" && space.port == server.port && space.protocol == "https")
        #expect(space.receivesCredentialSecurely && space.realm == nil)
        let trust = try #require(space.serverTrust)
        #expect(trust.certificates.first == (try Certificates.serverDER()) && !trust.isTrusted)
        session.invalidateAndCancel()
    }

    @Test func unknownRootIsRefusedByDefault() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let session = URLSession.test()
        let error = try #require(try await session.load(server.url()).error as? URLError)
        #expect(error.code == .serverCertificateHasUnknownRoot && error.failingURL == server.url())
        #expect(error.userInfo[NSUnderlyingErrorKey] != nil && server.requests.isEmpty)
        session.invalidateAndCancel()
    }

    enum CertificateFault: String, CaseIterable { case expired, future, otherName, selfSigned, purpose }

    @Test(arguments: CertificateFault.allCases)
    func certificateErrorHasItsCode(_ problem: CertificateFault) async throws {
        let authority = try Certificates.authority()
        var profile = TestCertificateProfile("localhost", names: ["localhost"], addresses: ["127.0.0.1"])
        switch problem {
        case .expired: (profile.validFrom, profile.validUntil) = (-7200, -3600)
        case .future: (profile.validFrom, profile.validUntil) = (3600, 7200)
        case .otherName: (profile.names, profile.addresses) = (["other.test"], [])
        case .purpose: profile.usage = "clientAuth"
        case .selfSigned: break
        }
        let certificate = problem == .selfSigned ? try TestCertificate(profile) : try authority.issue(profile)
        let server = try await WebServer(tls: Certificates.server(certificate), ["/": .text("hello")])
        let session = URLSession.test()
        let code = try #require(try await session.load(server.url()).code)
        let codes: [URLError.Code] = [
            .serverCertificateHasBadDate, .serverCertificateNotYetValid, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot,
        ]
        #expect(codes.contains(code) && server.requests.isEmpty)
        // A delegate can accept it.
        let trusting = URLSession.test(DataRecorder(.trusting))
        #expect(try await trusting.load(server.url()).text == "hello")
        session.invalidateAndCancel()
        trusting.invalidateAndCancel()
    }

    @Test func refusedTrustIsAFailure() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        for disposition in [
            URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, .rejectProtectionSpace,
        ] {
            var policies = Policies()
            policies.sessionChallenge = { $1(disposition, nil) }
            let recorder = DataRecorder(policies)
            let notes = try await recorder.run(server.url())
            #expect(notes.error is URLError && server.requests.isEmpty)
            if disposition == .cancelAuthenticationChallenge {
                #expect((notes.error as? URLError)?.code == .cancelled)
            }
        }
    }

    @Test(arguments: [true, false])
    func programsOwnAuthorityDecides(_ isRight: Bool) async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let authority = try isRight ? Certificates.authority() : TestCertificateAuthority("Other Root")
        let anchor = Data(authority.pem.utf8)
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            guard let trust = challenge.protectionSpace.serverTrust else { return answer(.performDefaultHandling, nil) }
            do {
                try trust.evaluate(anchors: [anchor])
                answer(.useCredential, URLCredential(trust: trust))
            } catch {
                answer(.rejectProtectionSpace, nil)
            }
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data((isRight ? "hello" : "").utf8) && server.requests.isEmpty == !isRight)
        #expect((notes.error as? URLError)?.code == (isRight ? nil : .serverCertificateHasUnknownRoot))
    }

    @Test func programCanPinACertificate() async throws {
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("hello")])
        let pinned = try Certificates.serverDER()
        for isRight in [true, false] {
            var policies = Policies()
            policies.sessionChallenge = { challenge, answer in
                guard let trust = challenge.protectionSpace.serverTrust,
                    (trust.certificates.first == pinned) == isRight
                else { return answer(.cancelAuthenticationChallenge, nil) }
                answer(.useCredential, URLCredential(trust: trust))
            }
            let recorder = DataRecorder(policies)
            let notes = try await recorder.run(server.url())
            #expect((notes.error == nil) == isRight)
        }
    }

    @Test func clientCertificateIsSentOnRequest() async throws {
        let server = try await WebServer(tls: Certificates.serverAskingForCertificate(), ["/": .text("hello")])
        let identity = try Certificates.clientIdentity()
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                return Policies.trust(challenge, answer)
            }
            answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("hello".utf8) && notes.error == nil)
        let asked = notes.challenges.first {
            $0.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate
        }
        #expect(asked?.protectionSpace.distinguishedNames?.count == 1 && asked?.previousFailureCount == 0)
        #expect(server.metadata(0)?.peerChain.isEmpty == false)
    }

    /// The certificate is the connection's, and later ones resume its TLS session.
    @Test func clientCertificateIsThatOfAllTasksOfTheSession() async throws {
        let server = try await WebServer(tls: Certificates.serverAskingForCertificate(), ["/": .text("hello")])
        let identity = try Certificates.clientIdentity()
        let asked = Mutex(0)
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                return Policies.trust(challenge, answer)
            }
            let isFirst = asked.withLock { count in
                count += 1
                return count == 1
            }
            guard isFirst else { return answer(.rejectProtectionSpace, nil) }
            answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .none))
        }
        let session = URLSession.test(DataRecorder(policies))
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "hello") }
        #expect(server.connections == 1)
        server.dropConnections()
        #expect(await server.hasLost(0))
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.connections == 2 && server.metadata(1)?.resumed == true && asked.withLock { $0 } == 1)
        // Another session has its own.
        let other = URLSession.test(DataRecorder(.trusting))
        #expect(try await other.load(server.url()).text == nil)
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func missingClientCertificateIsAFailure() async throws {
        let server = try await WebServer(tls: Certificates.serverAskingForCertificate(), ["/": .text("hello")])
        let recorder = DataRecorder(.trusting)
        let code = (try await recorder.run(server.url()).error as? URLError)?.code
        #expect([.clientCertificateRequired, .clientCertificateRejected, .secureConnectionFailed].contains(code))
        #expect(server.requests.isEmpty)
    }

    @Test func versionsOfTheConfigurationAreKept() async throws {
        let old = try await WebServer(tls: Certificates.server { $0.maximumVersion = .tls12 }, ["/": .text("old")])
        let new = try await WebServer(tls: Certificates.server { $0.minimumVersion = .tls13 }, ["/": .text("new")])
        let onlyNew = URLSession.test(DataRecorder(.trusting)) { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }
        #expect(try await onlyNew.load(new.url()).text == "new")
        #expect(try await onlyNew.load(old.url()).code == .secureConnectionFailed)
        let onlyOld = URLSession.test(DataRecorder(.trusting)) { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }
        #expect(try await onlyOld.load(old.url()).text == "old")
        #expect(try await onlyOld.load(new.url()).code == .secureConnectionFailed)
        onlyNew.invalidateAndCancel()
        onlyOld.invalidateAndCancel()
    }

    @Test(.onlyPlain("the server has no TLS")) func serverWithoutTLSIsAFailure() async throws {
        let server = try await WebServer(["/": .text("plain")])
        let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
        let session = URLSession.test(DataRecorder(.trusting))
        #expect(try await session.load(url).code == .secureConnectionFailed)
        session.invalidateAndCancel()
    }

    @Test func truncationIsNotAnEnd() async throws {
        let server = try await WebServer(
            tls: Certificates.server(), ["/": .head(200).then(.send(Array("half".utf8)), .cut)])
        let session = URLSession.test(DataRecorder(.trusting))
        let loaded = try await session.load(server.url())
        #expect(loaded.code == .networkConnectionLost && loaded.data == nil)
        session.invalidateAndCancel()
    }
}
