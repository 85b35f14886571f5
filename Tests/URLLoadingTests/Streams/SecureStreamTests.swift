import Foundation
import SessionTasks
import Testing
import URLLoading

@Suite("TLS that begins in the middle of a stream", .loading, .timeLimit(.minutes(20)))
struct SecureStreamTests {
    /// Answers in the clear, starts TLS on request, and then echoes.
    private static func server(asksForCertificate: Bool = false) async throws -> ConnectionServer {
        let context = try asksForCertificate ? Certificates.serverAskingForCertificate() : Certificates.server()
        return try await ConnectionServer { task in
            try await task.say("ready\n")
            guard try await task.hear(4) == "TLS\n" else { return }
            try await task.say("go\n")
            try await task.startSecureConnection(SecureSettings(context: context))
            try await StreamTaskTests.echo(task)
        }
    }

    private func line(_ task: URLSessionStreamTask, _ count: Int) async throws -> String {
        let (data, _) = try await task.readData(ofMinLength: count, maxLength: count, timeout: 60)
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    /// All operations at once: the later ones wait for TLS.
    private func talk(_ task: URLSessionStreamTask) async throws -> [String] {
        task.resume()
        var lines = [try await self.line(task, 6)]
        task.write(Data("TLS\n".utf8), timeout: 0) { _ in }
        lines.append(try await self.line(task, 3))
        task.startSecureConnection()
        task.write(Data("secret".utf8), timeout: 0) { _ in }
        lines.append(try await self.line(task, 6))
        return lines
    }

    @Test func securedStreamContinuesEncrypted() async throws {
        let server = try await Self.server()
        let recorder = ConnectionRecorder(.trusting)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        #expect(try await self.talk(task) == ["ready\n", "go\n", "secret"])
        let space = try #require(recorder.notes.challenges.first?.protectionSpace)
        #expect(recorder.eventsOfTheTask.prefix(2) == ["created", "session challenge ServerTrust"])
        #expect(space.host == "127.0.0.1" && space.port == server.port)
        #expect(space.serverTrust?.certificates.first == (try Certificates.serverDER()))
        // A second call changes nothing.
        task.startSecureConnection()
        try await task.write(Data("more".utf8), timeout: 0)
        #expect(try await self.line(task, 4) == "more")
        task.closeWrite()
        let (rest, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 60)
        #expect(rest == Data() && isAtEnd)
        #expect(try await recorder.end().error == nil)
        session.invalidateAndCancel()
    }

    @Test func bytesBeforeTheEndAreReadAfterThePeerLeft() async throws {
        let server = try await WebServer(tls: Certificates.server())
        server.on("/", .text("hello"))
        let recorder = ConnectionRecorder(.trusting)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.startSecureConnection()
        task.resume()
        try await task.write(Data("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), timeout: 0)
        let (first, _) = try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 0)
        #expect(first == Data("HTTP".utf8))
        server.dropConnections()
        #expect(await recorder.log.has("read closed"))
        // The peer has closed: its system answers our close_notify with a reset.
        task.closeWrite()
        #expect(await recorder.log.has("write closed"))
        for _ in 0..<500 { await Task.yield() }
        let (rest, isAtEnd) = try await task.readData(ofMinLength: 1000, maxLength: 1000, timeout: 0)
        #expect(rest?.suffix(5) == Data("hello".utf8) && isAtEnd)
        #expect(try await recorder.end().error == nil)
        session.invalidateAndCancel()
    }

    @Test func untrustedServerEndsTheTask() async throws {
        let server = try await Self.server()
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let failure = await #expect(throws: URLError.self) { try await self.talk(task) }
        #expect(failure?.code == .serverCertificateHasUnknownRoot)
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .serverCertificateHasUnknownRoot && error.failureURLPeerTrust != nil)
        session.invalidateAndCancel()
    }

    @Test func delegateThatCancelsEndsTheTask() async throws {
        let server = try await Self.server()
        var policies = Policies()
        policies.sessionChallenge = { $1(.cancelAuthenticationChallenge, nil) }
        let recorder = ConnectionRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        let error = await #expect(throws: URLError.self) { try await self.talk(task) }
        #expect(error?.code == .cancelled)
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func delegatesClientCertificateIsShown() async throws {
        let server = try await Self.server(asksForCertificate: true)
        let identity = try Certificates.clientIdentity()
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in
            if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate {
                answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .none))
            } else {
                Policies.trust(challenge, answer)
            }
        }
        let recorder = ConnectionRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        #expect(try await self.talk(task).last == "secret")
        #expect(recorder.log.count("session challenge ClientCertificate") == 1)
        session.invalidateAndCancel()
    }

    @Test func peerWithoutTLSIsAFailure() async throws {
        let server = try await ConnectionServer { task in
            try await task.say("this is no handshake, but long enough to be one\n")
        }
        let recorder = ConnectionRecorder(.trusting)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.startSecureConnection()
        task.resume()
        let error = await #expect(throws: URLError.self) { try await self.line(task, 1) }
        #expect(error?.code == .secureConnectionFailed)
        #expect((try await recorder.end().error as? URLError)?.userInfo[NSUnderlyingErrorKey] != nil)
        session.invalidateAndCancel()
    }

    @available(*, deprecated, message: "So that what is deprecated can be called.")
    @Test func tlsIsNotStoppedAgain() async throws {
        let server = try await Self.server()
        let recorder = ConnectionRecorder(.trusting)
        let session = URLSession.test(recorder)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        _ = try await self.talk(task)
        task.stopSecureConnection()
        #expect(try await recorder.end().error == nil)
        #expect(recorder.log.count("read closed") == 1 && recorder.log.count("write closed") == 1)
        session.invalidateAndCancel()
    }
}
