import Foundation

/// Hears of the two directions of a stream task.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The reading side is shut, by either end; bytes that came before can still be read.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The writing side is shut; writes that are asked for later fail.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// Not called: what watches the network's routes is still to come.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// What `captureStreams()` asked for; the streams are not open. The last message of the task.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream)
}

extension URLSessionStreamDelegate {
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { LeftOut.call() }

    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { LeftOut.call() }

    public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        LeftOut.call()
    }

    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        LeftOut.call()
    }
}
