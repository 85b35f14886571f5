import HTTPSemantics
import Testing

@Suite("Digest, RFC 7616")
struct DigestTests {
    private func challenge(_ line: String) -> DigestChallenge? {
        Challenge.parse([line]).first.flatMap { DigestChallenge($0) }
    }

    private func session(_ line: String, user: String = "Mufasa", password: String = "Circle of Life") throws
        -> DigestSession
    {
        DigestSession(try #require(self.challenge(line)), user: user, password: password)
    }

    private func parameter(_ name: String, of value: String) -> String? {
        Challenge.parse([value]).first?.parameter(name)
    }

    /// §3.9.1
    @Test(arguments: [
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ])
    func exampleOfTheRFCIsAnswered(_ algorithm: String, _ response: String) throws {
        var session = try self.session(
            """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """)
        let value = session.fieldValue(
            for: DigestRequest(method: "GET", target: "/dir/index.html"),
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(
            value == """
                Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", \
                nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", response="\(response)", algorithm=\(algorithm), \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", \
                cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, nc=00000001
                """)
    }

    /// RFC 2617 §3.5, and the other algorithms with the same input, computed independently of this code.
    @Test(arguments: [
        ("qop=\"auth,auth-int\"", "6629fae49393a05397450978507c4ef1"),
        ("qop=auth, algorithm=MD5-sess", "8e3825c57e897f5a0dec6c2d4e5059d0"),
        (
            "qop=auth, algorithm=SHA-512-256",
            "f23c08ec7334a881f8286e68450ddbd9f0cd91c41481f0e1433604da8113c6dc"
        ),
        (
            "qop=auth, algorithm=SHA-512-256-sess",
            "0d21f0db3ec5cda5b850c0afa3bc29b4a3c5a6191959ff1baf511d4b38eb6b1e"
        ),
        ("qop=auth-int", "a75e110929b24cff16654e55796c46b8"), ("opaque=x", "670fd8c2df070c60b045671b8b24ff02"),
    ])
    func digestIsAnsweredInEveryForm(_ parameters: String, _ response: String) throws {
        var session = try self.session(
            "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \(parameters)",
            password: "Circle Of Life")
        var contentHash: String?
        if var hasher = session.contentHasher {
            hasher.update(Array("the content".utf8))
            contentHash = hasher.finalize()
        }
        let request = DigestRequest(method: "GET", target: "/dir/index.html", contentHash: contentHash)
        let value = session.fieldValue(for: request, clientNonce: "0a4f113b")
        #expect(self.parameter("response", of: value) == response)
    }

    /// The form of RFC 2069 has neither counter nor nonce of the client.
    @Test func digestWithoutQopOmitsNewParameters() throws {
        var session = try self.session("Digest realm=a, nonce=b")
        let value = session.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        #expect(self.parameter("qop", of: value) == nil)
        #expect(self.parameter("nc", of: value) == nil)
        #expect(self.parameter("cnonce", of: value) == nil)
    }

    @Test func userNameIsHashedOnRequest() throws {
        var session = try self.session(
            "Digest realm=\"api@example.org\", nonce=n, qop=auth, userhash=true, algorithm=SHA-256")
        let value = session.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        #expect(self.parameter("userhash", of: value) == "true")
        #expect(
            self.parameter("username", of: value)
                == "0a9ed318a424c7024ff890c5575b3c3769cea2f13ccc6c22410f516c68249d4d")
    }

    @Test func nonASCIIUserNameIsEncodedAsTheChallengeDemands() throws {
        let user = "J\u{E4}s\u{F8}n Doe"
        var extended = try self.session("Digest realm=a, nonce=n, qop=auth, charset=UTF-8", user: user)
        let value = extended.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        #expect(value.hasPrefix("Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, "))
        var plain = try self.session("Digest realm=a, nonce=n, qop=auth", user: user)
        let other = plain.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        #expect(self.parameter("username", of: other) == user)
    }

    @Test func usesOfANonceAreCounted() throws {
        var session = try self.session("Digest realm=a, nonce=n, qop=auth")
        let request = DigestRequest(method: "GET", target: "/")
        let counts = (0..<17).map { _ in
            self.parameter("nc", of: session.fieldValue(for: request, clientNonce: "c")) ?? ""
        }
        #expect(counts.first == "00000001")
        #expect(counts.last == "00000011")
    }

    @Test func nextNonceIsTaken() throws {
        var session = try self.session("Digest realm=a, nonce=n, qop=auth")
        let request = DigestRequest(method: "GET", target: "/")
        _ = session.fieldValue(for: request, clientNonce: "c")
        session.received(authenticationLines: ["qop=auth, rspauth=\"x\", nextnonce=\"m\""])
        let value = session.fieldValue(for: request, clientNonce: "c")
        #expect(self.parameter("nonce", of: value) == "m")
        #expect(self.parameter("nc", of: value) == "00000001")
        session.received(authenticationLines: ["rspauth=x"])
        #expect(self.parameter("nc", of: session.fieldValue(for: request, clientNonce: "c")) == "00000002")
    }

    @Test func requestIsRetriedOnlyWithAStaleNonce() throws {
        var session = try self.session("Digest realm=a, nonce=n, qop=auth")
        _ = session.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        let stale = try #require(self.challenge("Digest realm=a, nonce=m, qop=auth, stale=TRUE"))
        #expect(session.rechallenged(by: stale) == .retry)
        let value = session.fieldValue(for: DigestRequest(method: "GET", target: "/"), clientNonce: "c")
        #expect(self.parameter("nonce", of: value) == "m")
        #expect(self.parameter("nc", of: value) == "00000001")
        let wrong = try #require(self.challenge("Digest realm=a, nonce=o, qop=auth"))
        #expect(session.rechallenged(by: wrong) == .wrongCredentials)
        let other = try #require(self.challenge("Digest realm=b, nonce=o, qop=auth, stale=true"))
        #expect(session.rechallenged(by: other) == .wrongCredentials)
    }

    @Test func secretOfASessionAlgorithmIsKept() throws {
        var session = try self.session("Digest realm=a, nonce=n, qop=auth, algorithm=SHA-256-sess")
        let request = DigestRequest(method: "GET", target: "/")
        _ = session.fieldValue(for: request, clientNonce: "c1")
        let second = session.fieldValue(for: request, clientNonce: "c2")
        // H(H(A1 of the session's first nonces):n:00000002:c2:auth:H(GET:/)), computed independently of this code.
        #expect(
            self.parameter("response", of: second)
                == "53f27df24a1723bb35ac169bc16c4ecec62bbd4b2b00b4738735d3fc734d1e79")
    }

    @Test func quotedParametersAreEscaped() throws {
        var session = try self.session("Digest realm=\"a\\\"b\\\\c\", nonce=n, qop=auth", user: "x\", y=\"z")
        let value = session.fieldValue(for: DigestRequest(method: "GET", target: "/\"\r\n"), clientNonce: "c")
        #expect(self.parameter("realm", of: value) == "a\"b\\c")
        #expect(self.parameter("username", of: value) == "x\", y=\"z")
        #expect(self.parameter("uri", of: value) == "/\"")
        #expect(self.parameter("y", of: value) == nil)
    }

    @Test(arguments: [
        "Digest realm=a", "Digest nonce=b", "Digest realm=a, nonce=b, algorithm=SHA-512",
        "Digest realm=a, nonce=b, qop=auth-future", "Basic realm=a, nonce=b",
    ])
    func unsupportedDigestIsIgnored(_ line: String) {
        #expect(self.challenge(line) == nil)
    }

    @Test func domainOfAChallengeIsRead() {
        #expect(self.challenge("Digest realm=a, nonce=b, domain=\"/x http://h/y\"")?.domain == ["/x", "http://h/y"])
    }
}
