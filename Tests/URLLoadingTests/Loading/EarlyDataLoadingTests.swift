import Foundation
import Synchronization
import TLSEngine
import Testing
import URLLoading

@Suite("Requests as early data, RFC 8470", .loading, .timeLimit(.minutes(20)))
struct EarlyDataLoadingTests {
    private static func context(limit: Int = 1 << 14) throws -> TLSContext {
        try Certificates.server {
            $0.resumption = .serverCache(limit: 100)
            $0.earlyDataLimit = limit
        }
    }

    private static func session(_ recorder: DataRecorder? = nil, isEnabled: Bool = true) -> URLSession {
        URLSession.test(recorder ?? DataRecorder(.trusting)) { $0.enablesEarlyData = isEnabled }
    }

    /// Loads once, so that there is a session to resume, and waits until its connection is closed.
    private static func prepare(_ session: URLSession, _ server: WebServer) async throws {
        #expect(try await session.load(server.url("/first")).text == "first")
        server.finishConnections()
        #expect(await server.hasLost(0))
    }

    private static func count(_ server: WebServer, _ connection: Int) -> Int? {
        guard case .accepted(let count) = server.metadata(connection)?.earlyData else { return nil }
        return count
    }

    @Test(arguments: ["GET", "HEAD"])
    func safeRequestIsSentAsEarlyData(_ method: String) async throws {
        let server = try await WebServer(tls: Self.context(), ["/first": .text("first"), "/": .text("hello")])
        let session = Self.session()
        try await Self.prepare(session, server)
        let loaded = try await session.load(.to(server.url(), method))
        #expect(loaded.status == 200 && loaded.text == (method == "GET" ? "hello" : ""))
        #expect(try #require(Self.count(server, 1)) > 40)
        guard method == "GET" else { return session.invalidateAndCancel() }
        // The connection is an ordinary one afterwards.
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.connections == 2 && server.requests.map(\.path) == ["/first", "/", "/"])
        session.invalidateAndCancel()
    }

    @Test func otherRequestsAreNotSentAsEarlyData() async throws {
        let server = try await WebServer(tls: Self.context(), ["/first": .text("first"), "/": .text("hello")])
        let (session, plain) = (Self.session(), Self.session(isEnabled: false))
        try await Self.prepare(session, server)
        #expect(try await session.load(.to(server.url(), "POST", body: "text")).text == "hello")
        #expect(server.metadata(1)?.resumed == true && Self.count(server, 1) == nil)
        #expect(try await plain.load(server.url()).text == "hello")
        server.finishConnections()
        #expect(await server.hasLost(2))
        #expect(try await plain.load(server.url()).text == "hello")
        #expect(server.metadata(3)?.resumed == true && Self.count(server, 3) == nil)
        session.invalidateAndCancel()
        plain.invalidateAndCancel()
    }

    @Test func serverWithoutEarlyDataGetsNone() async throws {
        let server = try await WebServer(tls: Self.context(limit: 0), ["/first": .text("first"), "/": .text("hello")])
        let session = Self.session()
        try await Self.prepare(session, server)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.metadata(1)?.resumed == true && Self.count(server, 1) == nil)
        session.invalidateAndCancel()
    }

    @Test func rejectedRequestIsSentBehindTheHandshake() async throws {
        let context = try Self.context()
        let server = try await WebServer(tls: context, ["/first": .text("first"), "/": .text("hello")])
        let recorder = DataRecorder(.trusting)
        let session = Self.session(recorder)
        try await Self.prepare(session, server)
        // The server forgets its sessions.
        try context.reload(context.configuration)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.metadata(1)?.resumed == false && Self.count(server, 1) == nil)
        #expect(server.connections == 2 && server.requests.map(\.path) == ["/first", "/"])
        // The certificate is verified again.
        #expect(recorder.log.names.filter { $0.contains("ServerTrust") }.count == 2)
        session.invalidateAndCancel()
    }

    /// RFC 8470 §5.2.
    @Test func requestThatIsTooEarlyIsRepeated() async throws {
        let server = try await WebServer(tls: Self.context(), ["/first": .text("first")])
        let answers = Mutex(0)
        server.on("/") { _ in
            let count = answers.withLock { count in
                count += 1
                return count
            }
            return count == 1 ? .text("too early", status: 425) : .text("hello")
        }
        let recorder = DataRecorder(.trusting)
        let session = Self.session(recorder)
        try await Self.prepare(session, server)
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("hello".utf8) && (notes.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(Self.count(server, 1) != nil && server.requests.map(\.path) == ["/first", "/", "/"])
        #expect(recorder.log.count("response 200") <= 1 && recorder.log.count("response 425") == 0)
        let statuses = notes.metrics?.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode }
        #expect(statuses == [425, 200])
        session.invalidateAndCancel()
    }

    /// Another server's own 425 is an answer like any other.
    @Test func tooEarlyWithoutEarlyDataIsDelivered() async throws {
        let server = try await WebServer(tls: Self.context(), ["/": .text("no", status: 425)])
        let session = Self.session()
        #expect(try await session.load(server.url()).status == 425)
        #expect(server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func requestsOfOneTurnDoNotFollowAsEarlyData() async throws {
        let server = try await WebServer(tls: Self.context(), ["/first": .text("first"), "/": .text("hello")])
        let session = Self.session()
        try await Self.prepare(session, server)
        async let safe = session.load(server.url())
        async let unsafe = session.load(.to(server.url(), "POST", body: "text"))
        async let also = session.load(server.url())
        let loaded = try await [safe, unsafe, also]
        #expect(loaded.map(\.text) == ["hello", "hello", "hello"])
        for connection in 1..<server.connections {
            guard let count = Self.count(server, connection) else { continue }
            // One request, and the preface of HTTP/2: no POST is among them.
            #expect(count < 600)
        }
        #expect(server.requests.filter { $0.method == "POST" }.count == 1)
        // On HTTP/2 they wait for the handshake of the first one's connection.
        if WebProtocol.current == .http2 { #expect(server.connections == 2) }
        session.invalidateAndCancel()
    }

    @Test func metricsOfEarlyDataAreInOrder() async throws {
        let server = try await WebServer(tls: Self.context(), ["/first": .text("first"), "/": .text("hello")])
        let recorder = DataRecorder(.trusting)
        let session = Self.session(recorder)
        try await Self.prepare(session, server)
        session.dataTask(with: server.url()).resume()
        let transaction = try #require(try await recorder.end().metrics?.transactionMetrics.last)
        let dates = [
            transaction.connectStartDate, transaction.secureConnectionStartDate, transaction.secureConnectionEndDate,
            transaction.connectEndDate, transaction.requestStartDate, transaction.responseStartDate,
            transaction.responseEndDate,
        ].compactMap(\.self)
        #expect(dates.count == 7 && dates == dates.sorted())
        #expect(transaction.negotiatedTLSProtocolVersion == .TLSv13 && transaction.negotiatedTLSCipherSuite != nil)
        session.invalidateAndCancel()
    }

    /// A server that cannot finish the handshake gets the request without early data.
    @Test func failedHandshakeIsRepeatedWithoutEarlyData() async throws {
        let context = try Self.context()
        let server = try await WebServer(tls: context, ["/first": .text("first"), "/": .text("hello")])
        let session = Self.session()
        try await Self.prepare(session, server)
        // TLS 1.2 cannot answer a client that sends early data (RFC 8446 §D.3).
        var old = context.configuration
        old.maximumVersion = .tls12
        old.earlyDataLimit = 0
        try context.reload(old)
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.metadata(2)?.version == .tls12 && server.requests.count == 2)
        session.invalidateAndCancel()
    }
}
