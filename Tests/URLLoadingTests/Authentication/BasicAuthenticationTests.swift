import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Basic authentication", .loading, .timeLimit(.minutes(20)))
struct BasicAuthenticationTests {
    @Test func basicCredentialOfTheSessionIsSent() async throws {
        let (server, other) = (try await WebServer(), try await WebServer(["/": .text("other")]))
        server.on("/") { .text($0["Authorization"] ?? "-") }
        server.on("/near", .redirect(to: "/"))
        server.on("/far", .redirect(to: other.url().absoluteString))
        other.on("/back", .redirect(to: server.url().absoluteString))
        server.on("/around", .redirect(to: other.url("/back").absoluteString))
        let session = URLSession.test {
            $0.httpAdditionalHeaders = ["authorization": "Bearer of the session"]
            $0.urlCache = nil
        }
        for path in ["/", "/near", "/around"] {
            #expect(try await session.load(server.url(path)).text == "Bearer of the session", "\(path)")
        }
        let own = try await session.load(.to(server.url(), "GET", ["Authorization": "Bearer of the request"]))
        #expect(own.text == "Bearer of the request")
        #expect(try await session.load(server.url("/far")).text == "other")
        #expect(other.requests.map { $0["Authorization"] } == [nil, nil])
        // A host named by the program itself gets the field.
        _ = try await session.load(other.url())
        #expect(other.requests.last?["Authorization"] == "Bearer of the session")
        session.invalidateAndCancel()
    }

    @Test func credentialOfAFieldYieldsToAChallengesAnswer() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let recorder = DataRecorder(.credential("user", "passwd", .forSession))
        let session = URLSession.test(recorder) {
            $0.httpAdditionalHeaders = ["Authorization": "Bearer old"]
            $0.urlCache = nil
        }
        session.dataTask(with: server.url()).resume()
        #expect(try await recorder.end().data == Data("in".utf8))
        // A known credential is sent with the first request.
        #expect(try await session.load(server.url()).text == "in")
        let sent = ["Bearer old", "Basic dXNlcjpwYXNzd2Q=", "Basic dXNlcjpwYXNzd2Q="]
        #expect(server.requests.map { $0["Authorization"] } == sent)
        session.invalidateAndCancel()
    }

    /// Requires `user:passwd`.
    static func guarded(_ realm: String = "r") -> WebServer.Script {
        { request in
            request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
                ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"\(realm)\""], status: 401)
        }
    }

    static func server() async throws -> WebServer {
        let server = try await WebServer()
        server.on("/", self.guarded())
        server.on("/more/deep", self.guarded())
        return server
    }

    @Test func challengeIsAnswered() async throws {
        let server = try await Self.server()
        let recorder = DataRecorder(.credential("user", "passwd"))
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("in".utf8) && notes.error == nil)
        let challenge = try #require(notes.challenges.first)
        let space = challenge.protectionSpace
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && space.realm == "r")
        #expect(
            space.host == "127.0.0.1" && space.port == server.port && space.protocol == server.scheme
                && !space.isProxy())
        #expect(challenge.previousFailureCount == 0 && challenge.proposedCredential == nil)
        #expect((challenge.failureResponse as? HTTPURLResponse)?.statusCode == 401 && notes.challenges.count == 1)
    }

    /// The delegate's first question about a request says that nothing of it has failed.
    @Test func refusalOfAnEarlierRequestsCredentialIsNoFailure() async throws {
        let server = try await WebServer()
        server.on("/", Self.guarded())
        server.on("/other") { request in
            request["Authorization"] == "Basic \(Data("else:word".utf8).base64EncodedString())"
                ? .text("there") : .text("no", ["WWW-Authenticate: Basic realm=\"other\""], status: 401)
        }
        var policies = Policies()
        policies.challenge = { challenge, answer in
            let isOther = challenge.protectionSpace.realm == "other"
            answer(
                .useCredential,
                URLCredential(
                    user: isOther ? "else" : "user", password: isOther ? "word" : "passwd", persistence: .forSession))
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.urlCache = nil }
        session.dataTask(with: server.url()).resume()
        #expect(try await recorder.end().data == Data("in".utf8))
        #expect(try await session.load(server.url("/other")).text == "there")
        #expect(server.requests.last?.path == "/other" && server.requests.count == 4)
        let challenges = recorder.notes.challenges
        #expect(challenges.map(\.previousFailureCount) == [0, 0])
        session.invalidateAndCancel()
    }

    /// One that is not kept is for its task; others are asked about.
    @Test(arguments: [URLCredential.Persistence.none, .forSession])
    func credentialThatIsNotKeptIsNotSentWithOtherTasks(_ persistence: URLCredential.Persistence) async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { _, answer in
            answer(.useCredential, URLCredential(user: "user", password: "passwd", persistence: persistence))
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) {
            $0.urlCache = nil
            $0.urlCredentialStorage = URLCredentialStorage()
        }
        for _ in 0..<2 { #expect(try await session.load(server.url()).status == 200) }
        let isKept = persistence == .forSession
        #expect(recorder.notes.challenges.count == (isKept ? 1 : 2) && server.requests.count == (isKept ? 3 : 4))
        session.invalidateAndCancel()
    }

    /// What the storage proposes, and was refused before anybody was asked, is not sent again without the program's word.
    @Test func refusedCredentialOfAnEarlierRequestIsSentOnce() async throws {
        let server = try await WebServer()
        let isOpen = Mutex(true)
        server.on("/") { request in
            let isIn = isOpen.withLock(\.self) && request["Authorization"] == "Basic dXNlcjpwYXNzd2Q="
            return isIn ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let storage = URLCredentialStorage()
        let session = URLSession.test {
            $0.urlCache = nil
            $0.urlCredentialStorage = storage
        }
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: server.scheme, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.setDefaultCredential(
            URLCredential(user: "user", password: "passwd", persistence: .forSession), for: space)
        #expect(try await session.load(server.url()).text == "in")
        isOpen.withLock { $0 = false }
        #expect(try await session.load(server.url()).status == 401)
        #expect(server.requests.count == 3)
        session.invalidateAndCancel()
    }

    @Test func wrongAnswerIsAskedForAgain() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { challenge, answer in
            guard challenge.previousFailureCount < 3 else { return answer(.performDefaultHandling, nil) }
            answer(.useCredential, URLCredential(user: "user", password: "wrong", persistence: .forSession))
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 401 && notes.error == nil)
        #expect(notes.challenges.map(\.previousFailureCount) == [0, 1, 2, 3])
        #expect(notes.challenges[1].proposedCredential?.user == "user" && server.requests.count == 4)
    }

    @Test func cancelledChallengeEndsTheTask() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { $1(.cancelAuthenticationChallenge, nil) }
        let recorder = DataRecorder(policies)
        let error = try #require(try await recorder.run(server.url()).error as? URLError)
        #expect([.cancelled, .userCancelledAuthentication].contains(error.code) && error.failingURL == server.url())
    }

    @Test func taskContinuesWithoutACredential() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { $1(.useCredential, nil) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 401 && notes.data == Data("no".utf8))
        #expect(notes.error == nil)
    }

    @Test func nextSchemeIsTriedAfterARejectedProtectionSpace() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            if request["Authorization"]?.hasPrefix("Basic") == true { return .text("in") }
            let digest = "WWW-Authenticate: Digest realm=\"d\", nonce=\"n\", qop=\"auth\", algorithm=MD5"
            return .text("no", [digest, "WWW-Authenticate: Basic realm=\"b\""], status: 401)
        }
        var policies = Policies()
        policies.challenge = { challenge, answer in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
                return answer(.rejectProtectionSpace, nil)
            }
            answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.data == Data("in".utf8))
        #expect(notes.challenges.map(\.protectionSpace.realm) == ["d", "b"])
    }

    @Test func refusalIsGivenWhenEverySchemeIsRejected() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { $1(.rejectProtectionSpace, nil) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect((notes.response as? HTTPURLResponse)?.statusCode == 401 && notes.error == nil)
    }

    @Test func unknownSchemeIsNotAskedAbout() async throws {
        let server = try await WebServer([
            "/": .text("", status: 401), "/odd": .text("", ["WWW-Authenticate: Odd realm=\"r\""], status: 401),
            "/broken": .text("", ["WWW-Authenticate: ,,=\"\","], status: 401),
        ])
        for path in ["/", "/odd", "/broken"] {
            let recorder = DataRecorder(.credential("u", "p"))
            let notes = try await recorder.run(server.url(path))
            #expect(notes.challenges.isEmpty && (notes.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(notes.error == nil)
        }
    }

    @Test func credentialOfTheURLIsTaken() async throws {
        let server = try await Self.server()
        let url = try #require(URL(string: "\(server.scheme)://user:passwd@127.0.0.1:\(server.port)/"))
        let session = URLSession.test()
        let loaded = try await session.load(url)
        #expect(loaded.text == "in")
        #expect(server.requests.allSatisfy { $0.target == "/" && $0["Host"] == "127.0.0.1:\(server.port)" })
        session.invalidateAndCancel()
    }

    @Test func credentialOfTheURLIsPercentDecoded() async throws {
        let server = try await WebServer()
        // "me@home" and "a:b/c".
        server.on("/") { request in
            request["Authorization"] == "Basic bWVAaG9tZTphOmIvYw=="
                ? .text("in") : .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let url = try #require(URL(string: "\(server.scheme)://me%40home:a%3Ab%2Fc@127.0.0.1:\(server.port)/"))
        let session = URLSession.test()
        #expect(try await session.load(url).text == "in")
        session.invalidateAndCancel()
    }

    /// The program asks for the password. A credential of another user is not taken for this one's.
    @Test(arguments: [true, false]) func userOfAURLWithoutAPasswordIsProposed(_ isAnswered: Bool) async throws {
        let server = try await Self.server()
        let url = try #require(URL(string: "\(server.scheme)://user@127.0.0.1:\(server.port)/"))
        let storage = URLCredentialStorage()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: server.scheme, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.setDefaultCredential(
            URLCredential(user: "other", password: "passwd", persistence: .forSession), for: space)
        var policies = Policies()
        policies.challenge = { challenge, answer in
            guard isAnswered, let user = challenge.proposedCredential?.user else {
                return answer(.performDefaultHandling, nil)
            }
            answer(.useCredential, URLCredential(user: user, password: "passwd", persistence: .none))
        }
        let notes = try await DataRecorder(policies).run(url) { $0.urlCredentialStorage = storage }
        let proposed = try #require(notes.challenges.first?.proposedCredential)
        #expect(proposed.user == "user" && !proposed.hasPassword && proposed.persistence == .none)
        #expect((notes.response as? HTTPURLResponse)?.statusCode == (isAnswered ? 200 : 401) && notes.error == nil)
        let sent = server.requests.map { $0["Authorization"] }
        #expect(sent == (isAnswered ? [nil, "Basic dXNlcjpwYXNzd2Q="] : [nil]))
    }

    /// Whose methods are called from another thread.
    private final class OtherStorage: URLCredentialStorage, @unchecked Sendable {}

    @Test(arguments: [false, true]) func storedCredentialOfTheURLsUserIsTaken(_ isCustom: Bool) async throws {
        let server = try await Self.server()
        let storage = isCustom ? OtherStorage() : URLCredentialStorage()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: server.scheme, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        for user in ["other", "user"] {
            storage.set(URLCredential(user: user, password: "passwd", persistence: .forSession), for: space)
        }
        let url = try #require(URL(string: "\(server.scheme)://user@127.0.0.1:\(server.port)/"))
        let session = URLSession.test { $0.urlCredentialStorage = storage }
        #expect(try await session.load(url).text == "in")
        #expect(server.requests.map { $0["Authorization"] } == [nil, "Basic dXNlcjpwYXNzd2Q="])
        session.invalidateAndCancel()
    }

    /// An earlier request of the session was accepted with it.
    @Test func credentialOfAnotherUserIsNotSent() async throws {
        let server = try await WebServer()
        server.on("/") {
            $0["Authorization"].map { .text($0) } ?? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        var policies = Policies()
        policies.challenge = { challenge, answer in
            let user = challenge.proposedCredential?.user ?? "ada"
            answer(.useCredential, URLCredential(user: user, password: "secret", persistence: .forSession))
        }
        let session = URLSession.test(DataRecorder(policies)) {
            $0.urlCache = nil
            $0.urlCredentialStorage = nil
        }
        func value(_ user: String) -> String { "Basic \(Data("\(user):secret".utf8).base64EncodedString())" }
        for (user, sent) in [("", "ada"), ("mary@", "mary"), ("ada@", "ada"), ("mary@", "mary")] {
            let url = try #require(URL(string: "\(server.scheme)://\(user)127.0.0.1:\(server.port)/"))
            #expect(try await session.load(url).text == value(sent))
        }
        let sent = [nil, value("ada"), nil, value("mary"), value("ada"), value("mary")]
        #expect(server.requests.map { $0["Authorization"] } == sent)
        session.invalidateAndCancel()
    }

    @Test func credentialOfTheURLIsProposed() async throws {
        let server = try await Self.server()
        let url = try #require(URL(string: "\(server.scheme)://user:wrong@127.0.0.1:\(server.port)/"))
        let recorder = DataRecorder(.credential("user", "passwd"))
        let notes = try await recorder.run(url)
        #expect(notes.data == Data("in".utf8))
        #expect(notes.challenges.last?.proposedCredential?.user == "user")
    }

    @Test func defaultCredentialOfTheStorageIsTaken() async throws {
        let server = try await Self.server()
        let session = URLSession.test()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: server.scheme, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        session.configuration.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "user", password: "passwd", persistence: .forSession), for: space)
        #expect(try await session.load(server.url()).text == "in")
        session.invalidateAndCancel()
    }

    @Test func storedCredentialIsNotTriedForEver() async throws {
        let server = try await Self.server()
        let session = URLSession.test()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: server.scheme, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        session.configuration.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "user", password: "old", persistence: .forSession), for: space)
        #expect(try await session.load(server.url()).status == 401)
        #expect(server.requests.count <= 3)
        session.invalidateAndCancel()
    }

    @Test func sessionCredentialIsKept() async throws {
        let server = try await Self.server()
        let recorder = DataRecorder(.credential("user", "passwd", .forSession))
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url("/")).text == "in")
        #expect(try await session.load(server.url("/more/deep")).text == "in")
        #expect(recorder.notes.challenges.count == 1)
        #expect(session.configuration.urlCredentialStorage?.allCredentials.count == 1)
        session.invalidateAndCancel()
    }

    @Test func otherCredentialIsNotKept() async throws {
        let server = try await Self.server()
        let recorder = DataRecorder(.credential("user", "passwd", .none))
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url("/")).text == "in")
        #expect(session.configuration.urlCredentialStorage?.allCredentials.isEmpty == true)
        session.invalidateAndCancel()
    }

    @Test func bodyIsRepeatedAfterAChallenge() async throws {
        let server = try await Self.server()
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data(repeating: 3, count: 70_000).write(to: file)
        let recorder = DataRecorder(.credential("user", "passwd"))
        let session = URLSession.test(recorder)
        let (data, _) = try await session.upload(for: .to(server.url(), "PUT"), fromFile: file)
        #expect(data == Data("in".utf8) && server.requests.map(\.bodyCount) == [70_000, 70_000])
        session.invalidateAndCancel()
    }

    @Test func programsOwnAuthorizationIsSentUnchanged() async throws {
        let server = try await Self.server()
        let session = URLSession.test()
        let loaded = try await session.load(.to(server.url(), "GET", ["Authorization": "Basic dXNlcjpwYXNzd2Q="]))
        #expect(loaded.text == "in" && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func challengeIsAnsweredFromAnyThread() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { _, answer in
            DispatchQueue.global().async {
                answer(.useCredential, URLCredential(user: "user", password: "passwd", persistence: .none))
            }
        }
        let recorder = DataRecorder(policies)
        #expect(try await recorder.run(server.url()).data == Data("in".utf8))
    }

    @Test func challengeIsAnsweredThroughTheSenderToo() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.challenge = { challenge, _ in
            challenge.sender?.use(
                URLCredential(user: "user", password: "passwd", persistence: .none), for: challenge)
        }
        let recorder = DataRecorder(policies)
        #expect(try await recorder.run(server.url()).data == Data("in".utf8))
        for verb in 0..<4 {
            var policies = Policies()
            policies.challenge = { challenge, _ in
                switch verb {
                case 0: challenge.sender?.continueWithoutCredential(for: challenge)
                case 1: challenge.sender?.cancel(challenge)
                case 2: challenge.sender?.performDefaultHandling(for: challenge)
                default: challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
                }
            }
            let recorder = DataRecorder(policies)
            let notes = try await recorder.run(server.url())
            #expect(notes.completions == 1 && (verb == 1) == (notes.error != nil))
        }
    }

    /// The last user that was accepted is not that of a URL with another one.
    @Test func eachUserOfAURLHasACredential() async throws {
        let server = try await WebServer()
        server.on("/") {
            $0["Authorization"].map { .text($0) } ?? .text("no", ["WWW-Authenticate: Basic realm=\"r\""], status: 401)
        }
        let session = URLSession.test { $0.urlCache = nil }
        for user in ["ada", "bob", "ada"] {
            let url = try #require(URL(string: "\(server.scheme)://\(user):secret@127.0.0.1:\(server.port)/"))
            let value = "Basic \(Data("\(user):secret".utf8).base64EncodedString())"
            #expect(try await session.load(url).text == value)
        }
        session.invalidateAndCancel()
    }
}
