import Foundation
import SessionTasks
import StreamTransport

/// A byte stream over TCP or a Unix socket. Reads are queued in order, and so are writes.
///
/// Operations requested before the connection is established wait for it. Handlers run on the delegate queue. When a
/// read fails, all queued and later reads fail too; likewise writes. The task ends when both directions are closed and
/// the end of input was read, when the connection fails, or when the task is cancelled or captured. After a failure of
/// the connection, reads still get what the task had received before it, and then its error.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {  // Not final; thread-safe.
    private var connection: StreamConnection? { self.driver as? StreamConnection }

    /// The error of operations on a task without a connection.
    private var unavailableError: URLError {
        (self.driver as? RefusedTask)?.error ?? LoadFailure.error(of: .ended, url: nil)
    }

    /// Observers of this property and the next are notified only when the task ends.
    open override var countOfBytesReceived: Int64 {
        let final = super.countOfBytesReceived
        return self.connection?.record.map { Int64(clamping: $0.bytesReceived) } ?? final
    }

    open override var countOfBytesSent: Int64 {
        let final = super.countOfBytesSent
        return self.connection?.record.map { Int64(clamping: $0.bytesSent) } ?? final
    }

    /// Reads the next bytes.
    /// - Parameters:
    ///   - minBytes: the read waits for so many, or for the end of the stream; 0 means 1.
    ///   - maxBytes: at least 1 and `minBytes`; otherwise the read fails.
    ///   - timeout: in seconds from the resumption of the task; 0 for none. When it expires, this and all later reads
    ///     fail with `URLError.timedOut`.
    ///   - completionHandler: gets the bytes, and whether the stream is at its end. After `closeRead()` it gets
    ///     `URLError.networkConnectionLost`.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        guard let connection, let queue = self.session?.core.delegateQueue else {
            let error = self.unavailableError
            return self.onDelegateQueue { completionHandler(nil, false, error) }
        }
        let identifier = self.taskIdentifier
        connection.read(minBytes, maxBytes, timeout: timeout) { result in
            queue.add(ofTask: identifier) {
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
    ///   - completionHandler: called when the kernel has accepted every byte, which the peer may not have received yet.
    ///     After `closeWrite()` it gets `URLError.networkConnectionLost`.
    open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        guard let connection, let queue = self.session?.core.delegateQueue else {
            let error = self.unavailableError
            return self.onDelegateQueue { completionHandler(error) }
        }
        let identifier = self.taskIdentifier
        connection.write(data, timeout: timeout) { error in
            queue.add(ofTask: identifier) { completionHandler(error) }
        }
    }

    /// Hands the connection to the delegate as two unopened streams, after all queued operations. This is the task's
    /// last delegate call.
    open func captureStreams() { self.connection?.capture() }

    /// Closes the writing side after all queued writes and notifies the delegate; reading continues.
    open func closeWrite() { self.connection?.closeWrite() }

    /// Closes the reading side after all queued reads and notifies the delegate; writing continues.
    open func closeRead() { self.connection?.closeRead() }

    /// Starts TLS after all queued operations; later operations wait for the handshake. The delegate gets challenges
    /// for server trust and the client certificate, as in any load. The task fails if the handshake fails.
    open func startSecureConnection() { self.connection?.startSecure() }

    /// Closes the connection in both directions after all queued operations: TLS cannot be removed from an open one.
    @available(*, deprecated, message: "TLS cannot be taken off a connection: this closes it.")
    open func stopSecureConnection() { self.connection?.close() }
}

extension URLSessionStreamTask {
    /// As `readData(ofMinLength:maxLength:timeout:completionHandler:)`, without a detour through the delegate queue.
    ///
    /// Cancelling the Swift task withdraws the read; bytes already received go to the next read.
    /// - Throws: `URLError`.
    public func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        guard let connection else { throw self.unavailableError }
        let chunk = try await connection.read(minBytes, maxBytes, timeout: timeout)
        return (Data(chunk.bytes), chunk.isAtEnd)
    }

    /// As `write(_:timeout:completionHandler:)`, without a detour through the delegate queue.
    ///
    /// Cancelling the Swift task withdraws the write if it has not started; otherwise the write completes.
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

    /// The error of an invalid endpoint.
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

    /// Meaningful only without a `validationError`.
    var target: ConnectTarget {
        switch self {
        case .host(let name, let port): .host(name, port: UInt16(clamping: port))
        case .unix(let path): .address(.unix(path: path))
        }
    }

    /// The URL to check against the proxy settings; `nil` for endpoints that no proxy applies to.
    var proxiedURL: URL? {
        if case .host = self, self.validationError == nil { self.url } else { nil }
    }

    /// Identifies the server in challenges; `localhost` for a Unix socket. `nil` if the host name is invalid in a URL.
    var url: URL? {
        switch self {
        // Parsed from text: URLComponents traps on an invalid host.
        case .host(let name, let port):
            let host = name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
            let encoded =
                host.hasPrefix("[") ? host : host.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed)
            return encoded.flatMap { URL(string: "https://\($0):\(port)") }
        case .unix: return URL(string: "https://localhost")
        }
    }
}
