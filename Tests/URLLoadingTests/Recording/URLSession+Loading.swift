import Foundation
import URLLoading

/// The versions of HTTP that a session speaks.
enum WebProtocol: String, CaseIterable {
    case http1 = "http/1.1"
    case http2 = "h2"

    /// That of sessions and servers of tests that do not choose one. The tests run once for each.
    static let current: WebProtocol =
        ProcessInfo.processInfo.environment["SLUICE_TEST_HTTP"].flatMap { WebProtocol(rawValue: $0) } ?? .http1

    /// The field of a message whose body has no known length: HTTP/2 has no transfer codings (RFC 9113 §8.2.2).
    func transferCoding(isChunked: Bool) -> String? { self == .http1 && isChunked ? "chunked" : nil }
}

extension URLSession {
    /// A session with the configuration `test`.
    static func test(
        _ delegate: (any URLSessionDelegate)? = nil, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        let configuration = URLSessionConfiguration.test
        change(configuration)
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// Makes a data task with a completion handler, runs it, and waits for its end.
    func load(_ request: URLRequest, _ prepare: (URLSessionDataTask) -> Void = { _ in }) async throws -> Loaded {
        let outcome = Outcome<Loaded>()
        let task = self.dataTask(with: request) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }
        prepare(task)
        task.resume()
        return try await outcome.value()
    }

    func load(_ url: URL, _ prepare: (URLSessionDataTask) -> Void = { _ in }) async throws -> Loaded {
        try await self.load(URLRequest(url: url), prepare)
    }

    /// The tasks that `getAllTasks` reports.
    func liveTasks() async throws -> [URLSessionTask] {
        let outcome = Outcome<[URLSessionTask]>()
        self.getAllTasks { outcome.give($0) }
        return try await outcome.value()
    }
}

extension Recorder {
    /// Runs a data task to its end.
    @discardableResult
    func run(
        _ request: URLRequest, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> Recording {
        let session = URLSession.test(self, change)
        defer { session.finishTasksAndInvalidate() }
        session.dataTask(with: request).resume()
        return try await self.end()
    }

    @discardableResult
    func run(_ url: URL, _ change: (URLSessionConfiguration) -> Void = { _ in }) async throws -> Recording {
        try await self.run(URLRequest(url: url), change)
    }
}

extension URLRequest {
    /// A request with a method, fields and a body.
    static func to(
        _ url: URL, _ method: String = "GET", _ fields: [String: String] = [:], body: String? = nil
    ) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        if let body { request.httpBody = Data(body.utf8) }
        return request
    }
}
