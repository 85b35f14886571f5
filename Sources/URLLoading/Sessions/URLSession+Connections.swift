import Foundation
import HTTPTransport
import StreamTransport
import Synchronization

extension URLSession {
    /// A connection over a Unix socket, opened when the task is resumed; else as `streamTask(withHostName:port:)`. Ours:
    /// other platforms do not have it.
    /// - Parameter path: of the socket, at most 107 bytes; a leading `@` stands for the abstract name space.
    public func streamTask(withSocketPath path: String) -> URLSessionStreamTask {
        self.streamTask(to: .unix(path: path))
    }

    func streamTask(to place: StreamPlace) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(self.facts(nil), of: self)
        let refusal = place.proxiedURL.flatMap { self.core.refusal(ofConnectionFor: $0, scheme: "stream") }
        self.drive(task, at: place.url, unless: place.flaw ?? refusal) { life in
            StreamConnection(life, to: place.target, at: place.url)
        }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    func webSocketTask(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        var request = request
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = URLSessionWebSocketTask(self.facts(request), of: self)
        let flaw = WebSocketOpening.flaw(of: request)
        self.drive(task, at: request.url, unless: flaw) { WebSocketConnection($0) }
        self.admit(task) { RefusedTask(task, of: self, $0) }
        return task
    }

    /// The connection of a data task that left HTTP becomes a stream task's, with the same number. On the loop of the
    /// session.
    func becomeStream(_ old: URLSessionDataTask, _ connection: UpgradedConnection) {
        guard let loop = ConnectionLoops.next() else {
            connection.close()
            let record = old.transfer?.record ?? TaskMetricsRecord()
            old.use(nil)
            return self.core.tellEnd(of: old, Self.exhaustion(old.currentRequest?.url), record, session: self)
        }
        let task = URLSessionStreamTask(old.facts.withLock { $0 }, of: self)
        let life = ConnectionLife(task, of: self, on: loop)
        life.stage = .running
        if let record = old.transfer?.record { life.record = record }
        let driver = StreamConnection(life, at: old.currentRequest?.url)
        task.use(driver)
        self.core.replace(with: task)
        old.change(\.state) { $0.state = .completed }
        // The new task has it; and what drove the old one holds that in turn.
        old.facts.withLock { $0.delegate = nil }
        old.use(nil)
        loop.execute {
            // Before anything of the new task is told, and before anything can be asked of it.
            life.tell(.becameStream) { $0.data?.urlSession(self, dataTask: old, didBecome: task) }
            driver.adopt(connection)
        }
    }

    // MARK: Making

    /// Gives a task its driver.
    private func drive(
        _ task: URLSessionTask, at url: URL?, unless flaw: URLError?,
        _ make: (ConnectionLife) -> any ConnectionDriving
    ) {
        let flaw = flaw ?? self.core.refusal(of: url)
        guard flaw == nil, let loop = ConnectionLoops.next() else {
            return task.use(RefusedTask(task, of: self, flaw ?? Self.exhaustion(task.originalRequest?.url)))
        }
        task.use(make(ConnectionLife(task, of: self, on: loop)))
    }

    private static func exhaustion(_ url: URL?) -> URLError {
        LoadFailure.error(
            .cannotConnectToHost, url: url, cause: POSIXError(.EMFILE),
            text: "There are too few descriptors or threads left in this process.")
    }
}
