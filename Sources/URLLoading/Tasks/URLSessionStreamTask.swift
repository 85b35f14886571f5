import Foundation
import SessionTasks
import StreamTransport

/// A byte stream over TCP, or a Unix socket: reads and writes that queue, each kind in its order.
///
/// What is asked for before the connection stands waits for it. Handlers run on the delegate queue. When one read fails,
/// so do all that wait behind it and all that come later; writes likewise. The task ends when both directions are closed
/// and the end of input was read, when the connection fails, or when it is cancelled or captured.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    var connection: StreamConnection? { self.driver as? StreamConnection }

    /// Why nothing can be done with a task that has no connection.
    var unavailableError: URLError { (self.driver as? RefusedTask)?.error ?? LoadFailure.error(of: .ended, url: nil) }

    private func answer(_ work: @escaping @Sendable () -> Void) {
        if let line = self.session?.core.delegateQueue { line.add(work) } else { work() }
    }

    /// Who observes it, or the next, hears of the end alone.
    open override var countOfBytesReceived: Int64 {
        let known = super.countOfBytesReceived
        return self.connection?.record.map { Int64(clamping: $0.bytesReceived) } ?? known
    }

    open override var countOfBytesSent: Int64 {
        let known = super.countOfBytesSent
        return self.connection?.record.map { Int64(clamping: $0.bytesSent) } ?? known
    }

    /// Reads the next bytes.
    /// - Parameters:
    ///   - minBytes: the read waits for so many, or the end of the stream; 0 counts as 1.
    ///   - maxBytes: at least 1, and not below `minBytes`; else the read fails.
    ///   - timeout: in seconds, from the resumption on; 0 for none. When it passes, this read and all behind it fail
    ///     with `URLError.timedOut`.
    ///   - completionHandler: gets the bytes, and whether the stream is at its end. After `closeRead()` it gets
    ///     `URLError.networkConnectionLost`.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        guard let connection, let line = self.session?.core.delegateQueue else {
            let error = self.unavailableError
            return self.answer { completionHandler(nil, false, error) }
        }
        connection.read(minBytes, maxBytes, timeout: timeout) { result in
            line.add {
                switch result {
                case .success(let chunk): completionHandler(Data(chunk.bytes), chunk.isAtEnd, nil)
                case .failure(let error): completionHandler(nil, false, error)
                }
            }
        }
    }

    /// Writes all of `data`.
    /// - Parameters:
    ///   - timeout: as for a read.
    ///   - completionHandler: called when the system has taken every byte, which does not mean that the peer has. After
    ///     `closeWrite()` it gets `URLError.networkConnectionLost`.
    open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        guard let connection, let line = self.session?.core.delegateQueue else {
            let error = self.unavailableError
            return self.answer { completionHandler(error) }
        }
        connection.write(data, timeout: timeout) { error in
            line.add { completionHandler(error) }
        }
    }

    /// Hands the connection over when all that was asked for is done: the delegate gets two streams, which are not open,
    /// as the task's last message.
    open func captureStreams() { self.connection?.capture() }

    /// Ends our sending when all writes so far are done; reading goes on. The delegate is told.
    open func closeWrite() { self.connection?.closeWrite() }

    /// Ends our reading when all reads so far are answered; writing goes on. The delegate is told.
    open func closeRead() { self.connection?.closeRead() }

    /// Starts TLS when all that was asked for is done; what is asked for later waits for it. The delegate is asked about
    /// the server's certificate and for one of ours, as in any load; when TLS does not come about, the task fails.
    open func startSecureConnection() { self.connection?.startSecure() }

    /// Ends the connection in both directions when all that was asked for is done: TLS cannot be taken off a connection
    /// that goes on.
    @available(*, deprecated, message: "TLS cannot be taken off a connection: this closes it.")
    open func stopSecureConnection() { self.connection?.close() }
}

extension URLSessionStreamTask {
    /// As `readData(ofMinLength:maxLength:timeout:completionHandler:)`, without the delegate queue between.
    ///
    /// Cancelling the Swift task withdraws the read: bytes that had come for it go to the next.
    /// - Throws: `URLError`.
    public func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        guard let connection else { throw self.unavailableError }
        let chunk = try await connection.read(minBytes, maxBytes, timeout: timeout)
        return (Data(chunk.bytes), chunk.isAtEnd)
    }

    /// As `write(_:timeout:completionHandler:)`, without the delegate queue between.
    ///
    /// Cancelling the Swift task withdraws the write if it had not begun; one that has begun runs to its end.
    /// - Throws: `URLError`.
    public func write(_ data: Data, timeout: TimeInterval) async throws {
        guard let connection else { throw self.unavailableError }
        try await connection.write(data, timeout: timeout)
    }
}

/// Where a stream task connects to.
enum StreamEndpoint: Sendable {
    case host(String, port: Int)
    case unix(path: String)

    /// Why there can be no connection.
    var validationError: URLError? {
        switch self {
        case .host(let name, let port):
            if name.isEmpty { return Self.badURL("There is no host name.") }
            guard port > 0, port <= 65_535 else { return Self.badURL("There is no port \(port): 1 to 65535.") }
            return nil
        case .unix(let path):
            guard !path.isEmpty, path.utf8.count <= 107, !path.utf8.contains(0) else {
                return Self.badURL("The path of a Unix socket has 1 to 107 bytes, and no NUL.")
            }
            return nil
        }
    }

    private static func badURL(_ text: String) -> URLError {
        LoadFailure.error(.badURL, url: nil, cause: POSIXError(.EINVAL), text: text)
    }

    /// Only where there is no flaw.
    var target: ConnectTarget {
        switch self {
        case .host(let name, let port): .host(name, port: UInt16(clamping: port))
        case .unix(let path): .address(.unix(path: path))
        }
    }

    /// What a proxy might be asked for; `nil` where there is nothing of the kind.
    var proxiedURL: URL? {
        if case .host = self, self.validationError == nil { self.url } else { nil }
    }

    /// Names the server in challenges. Behind a Unix socket it is `localhost`. `nil` where the name cannot stand in a URL.
    var url: URL? {
        switch self {
        // As text: what URLComponents cannot take ends the process.
        case .host(let name, let port):
            let host = name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
            let encoded =
                host.hasPrefix("[") ? host : host.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed)
            return encoded.flatMap { URL(string: "https://\($0):\(port)") }
        case .unix: return URL(string: "https://localhost")
        }
    }
}
