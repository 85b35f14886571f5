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
        let life = self.drive(task, at: place.proxiedURL, unless: place.flaw) { life in
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
        let flaw = WebSocketOpening.flaw(of: request)
        let life = self.drive(task, at: request.url, unless: flaw) { WebSocketConnection($0) }
        self.admit(task, life)
        return task
    }

    /// The connection of a data task that left HTTP becomes a stream task's, with the same number. On the loop of the
    /// session.
    func becomeStream(_ old: URLSessionDataTask, _ connection: UpgradedConnection) {
        guard let loop = ConnectionLoops.next() else {
            connection.close()
            let error = Self.exhaustion(old.currentRequest?.url)
            return self.core.tellEnd(of: old, error, old.transfer?.record ?? TaskMetricsRecord(), session: self)
        }
        let task = URLSessionStreamTask(old.facts.withLock { $0 }, of: self)
        let life = ConnectionLife(task, of: self, on: loop)
        life.stage = .running
        if let record = old.transfer?.record { life.record = record }
        let driver = StreamConnection(life, at: old.currentRequest?.url)
        task.use(driver)
        self.core.replace(with: task)
        old.change(\.state) { $0.state = .completed }
        loop.execute {
            // Before anything of the new task is told, and before anything can be asked of it.
            life.tell(.becameStream) { $0.data?.urlSession(self, dataTask: old, didBecome: task) }
            driver.adopt(connection)
        }
    }

    // MARK: Making

    /// Gives a task its driver.
    /// - Returns: `nil` where the task cannot run at all.
    private func drive(
        _ task: URLSessionTask, at url: URL?, unless flaw: URLError?,
        _ make: (ConnectionLife) -> any ConnectionDriving
    ) -> ConnectionLife? {
        let flaw = flaw ?? self.flaw(at: url)
        guard flaw == nil, let loop = ConnectionLoops.next() else {
            task.use(RefusedTask(task, of: self, flaw ?? Self.exhaustion(task.originalRequest?.url)))
            return nil
        }
        let life = ConnectionLife(task, of: self, on: loop)
        task.use(make(life))
        return life
    }

    /// What is still to come, and would otherwise be passed over in silence.
    private func flaw(at url: URL?) -> URLError? {
        if self.core.configuration.identifier != nil {
            return LoadFailure.error(
                .unsupportedURL, url: url, text: "Background sessions are not there yet: use another configuration.")
        }
        guard ProxyChoice.isWanted(for: url, self.core.configuration) else { return nil }
        return LoadFailure.error(
            .unsupportedURL, url: url, text: "Proxies are not there yet: take them out of connectionProxyDictionary.")
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
