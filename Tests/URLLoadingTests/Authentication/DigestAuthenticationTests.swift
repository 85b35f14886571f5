import Foundation
import HTTPSemantics
import Testing
import URLLoading

@Suite("Digest authentication, RFC 7616", .loading, .timeLimit(.minutes(20)))
struct DigestAuthenticationTests {
    enum Algorithm: String, CaseIterable, Sendable {
        case md5 = "MD5"
        case sha256 = "SHA-256"

        func hash(_ text: String) -> String { self.hash(Array(text.utf8)) }

        func hash(_ bytes: [UInt8]) -> String {
            var hasher = DigestHasher(self == .md5 ? .md5 : .sha256)
            hasher.update(bytes)
            return hasher.finalize()
        }
    }

    /// The parameters of a field as in `name="value"`.
    static func parameters(_ field: String) -> [String: String] {
        var found: [String: String] = [:]
        for match in field.matches(of: /(\w+)=(?:"([^"]*)"|([^,\s]+))/) {
            found[String(match.1)] = String(match.2 ?? match.3 ?? "")
        }
        return found
    }

    /// Whether `request` proves that it knows the password `p` of `u`.
    static func isRight(_ request: ReceivedRequest, _ algorithm: Algorithm) -> Bool {
        guard let field = request["Authorization"], field.hasPrefix("Digest ") else { return false }
        let said = self.parameters(field)
        let first = algorithm.hash("u:r:p")
        var second = "\(request.method):\(said["uri"] ?? "")"
        if said["qop"] == "auth-int" { second += ":" + algorithm.hash(request.body) }
        let middle = said["qop"].map { "\(said["nc"] ?? ""):\(said["cnonce"] ?? ""):\($0):" } ?? ""
        let expected = algorithm.hash("\(first):\(said["nonce"] ?? ""):\(middle)\(algorithm.hash(second))")
        return said["response"] == expected && said["uri"] == request.target && said["username"] == "u"
    }

    static func challenge(_ nonce: String, _ algorithm: Algorithm, _ more: String = ", qop=\"auth\"") -> Answer {
        .text(
            "no",
            ["WWW-Authenticate: Digest realm=\"r\", nonce=\"\(nonce)\", algorithm=\(algorithm.rawValue)\(more)"],
            status: 401)
    }

    static func guarded(_ algorithm: Algorithm, _ more: String = ", qop=\"auth\"") -> WebServer.Script {
        { self.isRight($0, algorithm) ? .text("in") : self.challenge("n1", algorithm, more) }
    }

    @Test(arguments: Algorithm.allCases, [", qop=\"auth\"", ", qop=\"auth-int\"", ", qop=\"auth,auth-int\"", ""])
    func digestDoesNotRevealThePassword(_ algorithm: Algorithm, _ more: String) async throws {
        let server = try await WebServer()
        server.on("/dir/index.html", Self.guarded(algorithm, more))
        let recorder = DataRecorder(.credential("u", "p"))
        let notes = try await recorder.run(.to(server.url("/dir/index.html?a=b"), "PUT", body: "a body"))
        #expect(notes.data == Data("in".utf8))
        let space = try #require(notes.challenges.first?.protectionSpace)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPDigest && space.realm == "r")
        #expect(space.receivesCredentialSecurely && server.requests.map(\.text) == ["a body", "a body"])
    }

    @Test func usesOfANonceAreCounted() async throws {
        let server = try await WebServer()
        server.on("/", Self.guarded(.sha256))
        let recorder = DataRecorder(.credential("u", "p", .forSession))
        let session = URLSession.test(recorder)
        for _ in 0..<3 { #expect(try await session.load(server.url()).text == "in") }
        let counts = server.requests.compactMap { $0["Authorization"] }.compactMap { Self.parameters($0)["nc"] }
        #expect(counts == ["00000001", "00000002", "00000003"] && recorder.notes.challenges.count == 1)
        session.invalidateAndCancel()
    }

    @Test func staleNonceIsAnsweredAgain() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            let nonce = request["Authorization"].flatMap { Self.parameters($0)["nonce"] }
            if nonce == "n2", Self.isRight(request, .md5) { return .text("in") }
            return nonce == "n1"
                ? Self.challenge("n2", .md5, ", qop=\"auth\", stale=true") : Self.challenge("n1", .md5)
        }
        let recorder = DataRecorder(.credential("u", "p"))
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("in".utf8) && notes.challenges.count == 1 && server.requests.count == 3)
    }

    @Test func nextNonceIsTaken() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            guard Self.isRight(request, .md5) else { return Self.challenge("n1", .md5) }
            return .text("in", ["Authentication-Info: nextnonce=\"n2\""])
        }
        let recorder = DataRecorder(.credential("u", "p", .forSession))
        let session = URLSession.test(recorder)
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "in") }
        let nonces = server.requests.compactMap { $0["Authorization"] }.compactMap { Self.parameters($0)["nonce"] }
        #expect(nonces == ["n1", "n2"])
        session.invalidateAndCancel()
    }

    @Test func wrongPasswordIsAskedForAgain() async throws {
        let server = try await WebServer()
        server.on("/", Self.guarded(.md5))
        var policies = Policies()
        policies.challenge = { challenge, answer in
            guard challenge.previousFailureCount < 2 else { return answer(.cancelAuthenticationChallenge, nil) }
            answer(.useCredential, URLCredential(user: "u", password: "wrong", persistence: .none))
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.challenges.map(\.previousFailureCount) == [0, 1, 2] && notes.error is URLError)
    }

    @Test func digestGoesBeforeBasic() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            if Self.isRight(request, .sha256) { return .text("in") }
            let lines = [
                "WWW-Authenticate: Basic realm=\"r\"",
                "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
                "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5",
            ]
            return .text("no", lines, status: 401)
        }
        let recorder = DataRecorder(.credential("u", "p"))
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("in".utf8) && notes.challenges.count == 1)
    }
}
