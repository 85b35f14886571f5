import Foundation
import SessionTasks
import Synchronization
import Testing
import URLLoading

@Suite("Tasks release everything at their end", .loading, .timeLimit(.minutes(20)))
struct ReleaseTests {
    enum Kind: CaseIterable { case data, upload, download, bytes, becomesDownload, becomesStream, stream, webSocket }
    enum Style: CaseIterable { case async, handler, delegate }
    enum End: CaseIterable {
        case success, failure, cancelling, refusedRedirect, timeout, invalidation
        /// The session is invalid before the task is made.
        case invalidSession
        /// The same, with a task that is never resumed.
        case neverResumed
    }

    struct TaskUse: Hashable, CustomTestStringConvertible {
        let kind: Kind
        let style: Style
        let end: End

        var testDescription: String { "\(self.kind), \(self.style), \(self.end)" }

        static let all = Kind.allCases.flatMap { kind in
            Style.allCases.flatMap { style in End.allCases.map { TaskUse(kind: kind, style: style, end: $0) } }
        }.filter(\.exists)

        private var exists: Bool {
            switch self.kind {
            case .data, .upload, .download: self.style != .async || self.end != .neverResumed
            case .bytes: self.style == .async && self.end != .neverResumed
            case .becomesDownload: self.style == .delegate && [.success, .failure, .cancelling].contains(self.end)
            case .becomesStream: self.style == .delegate && self.end == .success
            case .stream: self.end != .refusedRedirect
            case .webSocket: true
            }
        }
    }

    @Test(arguments: TaskUse.all)
    func finishedTaskIsReleased(_ way: TaskUse) async throws {
        let run = try await TaskRun(way)
        try await run.perform()
        #expect(await run.watch.isReleased(\.task), "the task is held")
        #expect(await run.watch.isReleased(\.successor), "the task that it became is held")
        #expect(await run.watch.isReleased(\.own), "the task's delegate is held")
        #expect(await run.watch.isReleased(\.session), "the session is held")
        #expect(await run.watch.isReleased(\.delegate), "the session's delegate is held")
        #expect(run.watch.wasMade)
    }
}

/// Weak references to objects that must be released at the end.
final class ReleaseWatch: @unchecked Sendable {
    private let lock = Mutex(false)
    weak var session: URLSession?
    weak var delegate: AnyObject?
    weak var own: AnyObject?
    weak var task: URLSessionTask?
    weak var successor: URLSessionTask?

    var wasMade: Bool { self.lock.withLock { $0 } }

    func made(_ task: URLSessionTask) {
        self.lock.withLock { $0 = true }
        self.task = task
    }

    func isReleased<Value>(_ part: KeyPath<ReleaseWatch, Value?>) async -> Bool {
        let end = ContinuousClock.now + .seconds(240)
        while self[keyPath: part] != nil {
            guard ContinuousClock.now < end else { return false }
            await Task.yield()
        }
        return true
    }
}

/// Runs one task in its way, and releases it.
private struct TaskRun {
    /// Implements every delegate method, and retains its tasks like many delegates: all are released only if the tasks
    /// release the delegate first.
    final class Listener: NSObject, Sendable {
        let way: ReleaseTests.TaskUse
        let watch: ReleaseWatch
        let log = EventLog()
        private let tasks = Mutex<[URLSessionTask]>([])

        init(_ way: ReleaseTests.TaskUse, _ watch: ReleaseWatch) {
            (self.way, self.watch) = (way, watch)
        }

        func hold(_ task: URLSessionTask) {
            self.watch.made(task)
            if self.way.end != .neverResumed { self.tasks.withLock { $0.append(task) } }
        }
    }

    let way: ReleaseTests.TaskUse
    let watch = ReleaseWatch()
    private let web: WebServer
    private let sockets: ConnectionServer
    private let contact = Gate()

    init(_ way: ReleaseTests.TaskUse) async throws {
        self.way = way
        let contact = self.contact
        let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
        let whole = Answer.text("hello")
        self.web = try await WebServer([
            "/success": .text("hello"), "/failure": whole.broken(at: whole.bytes.count - 1, by: .reset),
            "/refusedRedirect": .redirect(to: "/success"), "/upgraded": .raw(switching).closing,
        ])
        self.web.on("/hanging") { _ in Answer([.open(contact), .hang]) }
        self.web.on("/endless", .head(200, ["Content-Length: 9"]).then(.hang))
        self.sockets = try await ConnectionServer { stream in
            if way.kind == .stream { return try await Self.serve(stream, way, contact) }
            if way.end == .refusedRedirect {
                return try await stream.refuse(302, ["Location: /elsewhere"])
            }
            guard way.end == .success || way.end == .failure else {
                contact.open()
                return
            }
            if way.end == .failure {
                try await stream.upgrade()
                throw URLError(.unknown)
            }
            _ = try await stream.accept().echo()
        }
    }

    private static func serve(_ stream: StreamTask, _ way: ReleaseTests.TaskUse, _ contact: Gate) async throws {
        contact.open()
        guard way.end == .success || way.end == .failure else { return }
        _ = try await stream.read(minimum: 1, maximum: 10)
        if way.end == .failure { throw URLError(.unknown) }
        try await stream.say("hello")
        stream.closeWrite()
    }

    private var request: URLRequest {
        let path =
            switch self.way.end {
            case .success where self.way.kind == .becomesStream: "/upgraded"
            case .success: "/success"
            case .failure: "/failure"
            case .refusedRedirect: "/refusedRedirect"
            case .cancelling where self.way.kind == .becomesDownload: "/endless"
            case .cancelling, .timeout, .invalidation, .invalidSession, .neverResumed: "/hanging"
            }
        if self.way.kind == .webSocket { return URLRequest(url: self.sockets.url(path)) }
        var request = URLRequest(url: self.web.url(path))
        if self.way.kind == .upload { request.httpMethod = "PUT" }
        if self.way.kind == .becomesStream { request.allHTTPHeaderFields = ["Connection": "Upgrade", "Upgrade": "x"] }
        return request
    }

    func perform() async throws {
        let delegate = Listener(self.way, self.watch)
        self.watch.delegate = delegate
        let log = delegate.log
        let own = Listener(self.way, self.watch)
        self.watch.own = own
        let session = URLSession.test(delegate) {
            $0.urlCache = nil
            guard self.way.end == .timeout else { return }
            $0.timeoutIntervalForRequest = 0.1
            $0.timeoutIntervalForResource = 0.1
        }
        self.watch.session = session
        if [.invalidSession, .neverResumed].contains(self.way.end) {
            session.invalidateAndCancel()
            try await self.wait(for: "invalid", in: log)
        }
        switch self.way.style {
        case .async: try await self.awaitEnd(of: session, own)
        case .handler, .delegate: try await self.runToEnd(session, own)
        }
        session.finishTasksAndInvalidate()
        try await self.wait(for: "invalid", in: log)
    }

    private struct MissingResult: Error {
        let what: String
    }

    private func wait(for gate: Gate) async throws {
        guard await gate.pass(within: Gate.patience) else {
            throw MissingResult(what: "the server's or the handler's call")
        }
    }

    private func wait(for event: String, in log: EventLog) async throws {
        guard await log.has(event, within: Gate.patience) else { throw MissingResult(what: event) }
    }

    // MARK: Awaited

    private func awaitEnd(of session: URLSession, _ own: Listener) async throws {
        let running = Task {
            switch self.way.kind {
            case .data: _ = try await session.data(for: self.request, delegate: own)
            case .upload: _ = try await session.upload(for: self.request, from: Data("up".utf8), delegate: own)
            case .download:
                let (file, _) = try await session.download(for: self.request, delegate: own)
                try FileManager.default.removeItem(at: file)
            case .bytes:
                let (bytes, _) = try await session.bytes(for: self.request, delegate: own)
                for try await _ in bytes {}
            case .stream:
                try await self.talk(session.streamTask(withHostName: "127.0.0.1", port: self.sockets.port), own)
            case .webSocket: try await self.talk(session.webSocketTask(with: self.request), own)
            case .becomesDownload, .becomesStream: break
            }
        }
        switch self.way.end {
        case .cancelling:
            try await self.wait(for: self.contact)
            running.cancel()
            // Cancelling a read ends the read alone.
            self.watch.task?.cancel()
        case .invalidation:
            try await self.wait(for: self.contact)
            session.invalidateAndCancel()
        default: break
        }
        if case .failure(let error as MissingResult) = await running.result { throw error }
    }

    private func talk(_ stream: URLSessionStreamTask, _ own: Listener) async throws {
        own.hold(stream)
        stream.delegate = own
        guard self.way.end != .neverResumed else { return }
        stream.resume()
        try await stream.write(Data("x".utf8), timeout: 0)
        _ = try await stream.readData(ofMinLength: 5, maxLength: 5, timeout: 0)
        stream.closeWrite()
        stream.closeRead()
        try await self.wait(for: "complete", in: own.log)
    }

    private func talk(_ socket: URLSessionWebSocketTask, _ own: Listener) async throws {
        own.hold(socket)
        socket.delegate = own
        guard self.way.end != .neverResumed else { return }
        socket.resume()
        try await socket.send(.string("x"))
        _ = try await socket.receive()
        socket.cancel(with: .normalClosure, reason: nil)
        try await self.wait(for: "complete", in: own.log)
    }

    // MARK: With a handler or a delegate

    private func runToEnd(_ session: URLSession, _ own: Listener) async throws {
        let handled = Gate()
        let task = self.task(of: session, handled)
        own.hold(task)
        task.delegate = own
        let log = own.log
        guard self.way.end != .neverResumed else { return }
        task.resume()
        self.talk(task)
        switch self.way.end {
        case .cancelling where self.way.kind == .becomesDownload:
            try await self.wait(for: "became download", in: log)
            self.watch.successor?.cancel()
        case .cancelling:
            try await self.wait(for: self.contact)
            task.cancel()
        case .invalidation:
            try await self.wait(for: self.contact)
            session.invalidateAndCancel()
        case .success where self.way.kind == .becomesStream:
            try await self.wait(for: "became stream", in: log)
            let stream = self.watch.successor as? URLSessionStreamTask
            stream?.closeRead()
            stream?.closeWrite()
        default: break
        }
        let isHandled = self.way.style == .handler && [.data, .upload, .download].contains(self.way.kind)
        if isHandled { try await self.wait(for: handled) } else { try await self.wait(for: "end", in: log) }
    }

    private func task(of session: URLSession, _ handled: Gate) -> URLSessionTask {
        let (request, body) = (self.request, Data("up".utf8))
        guard self.way.style == .handler else {
            return switch self.way.kind {
            case .data, .bytes, .becomesDownload, .becomesStream: session.dataTask(with: request)
            case .upload: session.uploadTask(with: request, from: body)
            case .download: session.downloadTask(with: request)
            case .stream: session.streamTask(withHostName: "127.0.0.1", port: self.sockets.port)
            case .webSocket: session.webSocketTask(with: request)
            }
        }
        return switch self.way.kind {
        case .data, .bytes, .becomesDownload, .becomesStream:
            session.dataTask(with: request) { _, _, _ in handled.open() }
        case .upload: session.uploadTask(with: request, from: body) { _, _, _ in handled.open() }
        case .download: session.downloadTask(with: request) { _, _, _ in handled.open() }
        case .stream: session.streamTask(withHostName: "127.0.0.1", port: self.sockets.port)
        case .webSocket: session.webSocketTask(with: request)
        }
    }

    private func talk(_ task: URLSessionTask) {
        if let stream = task as? URLSessionStreamTask {
            stream.write(Data("x".utf8), timeout: 0) { _ in }
            let captures = self.way.style == .delegate
            stream.readData(ofMinLength: 5, maxLength: 5, timeout: 0) { [weak stream] _, _, error in
                guard error == nil else { return }
                guard !captures else { return stream?.captureStreams() ?? () }
                stream?.closeWrite()
                stream?.closeRead()
            }
        } else if let socket = task as? URLSessionWebSocketTask {
            socket.send(.string("x")) { _ in }
            socket.receive { [weak socket] result in
                if case .success = result { socket?.cancel(with: .normalClosure, reason: nil) }
            }
        }
    }
}

extension TaskRun.Listener: URLSessionDataDelegate {
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { self.log.add("invalid") }
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { self.hold(task) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(self.way.end == .refusedRedirect ? nil : request)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        switch self.way.kind {
        case .becomesDownload: completionHandler(.becomeDownload)
        case .becomesStream: completionHandler(.becomeStream)
        default: completionHandler(.allow)
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { self.log.add("data") }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)
    {
        self.hold(dataTask)
        self.watch.successor = downloadTask
        self.log.add("became download")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        self.hold(dataTask)
        self.watch.successor = streamTask
        self.log.add("became stream")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.log.add("metrics")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.log.add("complete")
        self.log.add("end")
    }
}

extension TaskRun.Listener: URLSessionDownloadDelegate, URLSessionStreamDelegate, URLSessionWebSocketDelegate {
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        self.log.add("file")
    }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        self.log.add("captured")
        self.log.add("end")
    }
}
