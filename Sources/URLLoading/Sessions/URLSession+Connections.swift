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
        let life = self.drive(task, unless: place.flaw) { life in
            StreamConnection(life, to: place.target, at: place.url)
        }
        self.admit(task, life)
        return task
    }

    func webSocketTask(_ request: URLRequest, protocols: [String]) -> URLSessionWebSocketTask {
        var request = request
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = URLSessionWebSocketTask(self.facts(request), of: self)
        let life = self.drive(task, unless: WebSocketOpening.flaw(of: request)) { WebSocketConnection($0) }
        self.admit(task, life)
        return task
    }

    /// The connection of a data task that left HTTP becomes a stream task's, with the same number. On the loop of the
    /// session.
    func becomeStream(_ old: URLSessionDataTask, _ connection: UpgradedConnection) {
        guard let loop = ConnectionLoops.next() else {
            connection.close()
            let error = Self.exhaustion(old.currentRequest?.url)
            let metrics = (old.transfer?.record ?? TaskMetricsRecord()).metrics()
            return self.core.tellEnd(of: old, error, metrics, session: self)
        }
        let task = URLSessionStreamTask(old.facts.withLock { $0 }, of: self)
        let life = ConnectionLife(task, of: self, on: loop)
        life.stage = .running
        if let record = old.transfer?.record { life.record = record }
        let driver = StreamConnection(life, at: old.currentRequest?.url)
        task.use(driver)
        self.core.replace(with: task)
        old.change(\.state) { $0.state = .completed }
        self.core.line.tell(self.core.faces(for: task), .becameStream) { face in
            face.data?.urlSession(self, dataTask: old, didBecome: task)
        }
        loop.execute { driver.adopt(connection) }
    }

    // MARK: Making

    /// Gives a task its driver.
    /// - Returns: `nil` where the task cannot run at all.
    private func drive(
        _ task: URLSessionTask, unless flaw: URLError?, _ make: (ConnectionLife) -> any ConnectionDriving
    ) -> ConnectionLife? {
        var flaw = flaw
        if self.core.configuration.identifier != nil {
            flaw = LoadFailure.error(
                .unsupportedURL, url: task.originalRequest?.url,
                text: "Background sessions are not there yet: use another configuration.")
        }
        guard flaw == nil, let loop = ConnectionLoops.next() else {
            task.use(RefusedTask(task, of: self, flaw ?? Self.exhaustion(task.originalRequest?.url)))
            return nil
        }
        let life = ConnectionLife(task, of: self, on: loop)
        task.use(make(life))
        return life
    }

    private func admit(_ task: URLSessionTask, _ life: ConnectionLife?) {
        self.admit(task) {
            life?.flaw = LoadFailure.error(
                .cancelled, url: task.originalRequest?.url, text: "The session is invalid: make another one.")
        }
    }

    private static func exhaustion(_ url: URL?) -> URLError {
        LoadFailure.error(
            .cannotConnectToHost, url: url, cause: POSIXError(.EMFILE),
            text: "There are too few descriptors or threads left in this process.")
    }
}
