import Foundation
import StreamTransport
import Synchronization
import Testing
import URLLoading

@Suite("Slow and failing name lookups", .loading, .onlyDirect("a proxy looks the names up"), .timeLimit(.minutes(20)))
struct NameFaultTests {
    typealias Found = Result<[SocketAddress], ResolutionFailure>

    /// Keeps every name lookup until the test provides its answer.
    private final class SlowNames: Sendable {
        let asked = Outcome<String>()
        private let waiting = Mutex<[@Sendable (Found) -> Void]>([])

        var resolve: ConnectAttempt.Resolve {
            { host, _, answer in
                self.waiting.withLock { $0.append(answer) }
                self.asked.give(host)
            }
        }

        func answer(_ found: Found) {
            let waiting = self.waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for answer in waiting { answer(found) }
        }
    }

    private func url(_ server: WebServer, _ path: String = "/") throws -> URL {
        try #require(URL(string: "\(server.scheme)://slow.test:\(server.port)\(path)"))
    }

    private func place(_ server: WebServer) -> Found {
        .success([.ipv4(address: 0x7f00_0001, port: UInt16(clamping: server.port))])
    }

    @Test func requestTimeoutEndsANameLookup() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let names = SlowNames()
        let session = URLSession.test { $0.resolve = names.resolve }
        var request = URLRequest(url: try self.url(server))
        request.timeoutInterval = 1
        let loaded = try await session.load(request)
        #expect(loaded.code == .timedOut && loaded.data == nil && names.asked.now == "slow.test")
        #expect((loaded.error as? URLError)?.failingURL == request.url)
        // A later answer is ignored, and the session still works.
        names.answer(self.place(server))
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.requests.count == 1 && server.connections == 1)
        session.invalidateAndCancel()
    }

    @Test func resourceTimeoutEndsANameLookup() async throws {
        let server = try await WebServer()
        let names = SlowNames()
        let session = URLSession.test {
            $0.resolve = names.resolve
            $0.timeoutIntervalForResource = 0.3
        }
        #expect(try await session.load(self.url(server)).code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test func cancelledTaskAbandonsItsNameLookup() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let names = SlowNames()
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) { $0.resolve = names.resolve }
        let task = session.dataTask(with: try self.url(server))
        task.resume()
        _ = try await names.asked.value()
        task.cancel()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        names.answer(self.place(server))
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid") && server.requests.isEmpty)
        let metrics = try #require(notes.metrics?.transactionMetrics.first)
        #expect(metrics.domainLookupStartDate != nil && metrics.domainLookupEndDate == nil)
        #expect(metrics.connectStartDate == nil && metrics.responseEndDate == nil)
    }

    @Test func cancelledSwiftTaskAbandonsItsNameLookup() async throws {
        let server = try await WebServer()
        let names = SlowNames()
        let session = URLSession.test { $0.resolve = names.resolve }
        let url = try self.url(server)
        let waiting = Task { try await session.data(from: url) }
        _ = try await names.asked.value()
        waiting.cancel()
        let error = await #expect(throws: URLError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func loadContinuesWhenTheNameIsResolved() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let names = SlowNames()
        let session = URLSession.test { $0.resolve = names.resolve }
        let url = try self.url(server)
        async let loaded = session.load(url)
        _ = try await names.asked.value()
        names.answer(self.place(server))
        #expect(try await loaded.text == "hello")
        session.invalidateAndCancel()
    }

    @Test func nameLookupErrorsHaveTheirCodes() async throws {
        let server = try await WebServer()
        let failures: [(Found, URLError.Code)] = [
            (.failure(.nameNotFound), .cannotFindHost), (.failure(.temporarilyUnavailable), .dnsLookupFailed),
            (.failure(.failed("words")), .dnsLookupFailed), (.success([]), .cannotFindHost),
        ]
        for (found, code) in failures {
            let session = URLSession.test { $0.resolve = { _, _, answer in answer(found) } }
            let error = try await session.load(self.url(server)).error as? URLError
            #expect(error?.code == code, "\(found)")
            // Foundation's own words for a code that it has none for are the domain and the number.
            #expect(error?.localizedDescription.contains("NSURLErrorDomain") == false, "\(found)")
            session.invalidateAndCancel()
        }
    }
}
