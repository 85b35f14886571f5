import Foundation
import Synchronization
import URLLoading

/// Records the calls of stream and WebSocket tasks, and of data tasks that become streams.
final class ConnectionRecorder: Recorder, URLSessionDataDelegate, @unchecked Sendable {
    struct Captured: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream
    }

    let captured = Outcome<Captured>()
    let stream = Outcome<URLSessionStreamTask>()

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response")
        completionHandler(.becomeStream)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        self.note("became stream") { $0.streamTask = streamTask }
        self.stream.give(streamTask)
    }
}

extension ConnectionRecorder: URLSessionStreamDelegate {
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { self.note("read closed") }
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        self.note("write closed")
    }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        self.note("captured")
        self.captured.give(Captured(input: inputStream, output: outputStream))
    }
}

extension ConnectionRecorder: URLSessionWebSocketDelegate {
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        self.note("open \(`protocol` ?? "-")") { $0.response = webSocketTask.response }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        let text = reason.map { String(decoding: $0, as: UTF8.self) } ?? "-"
        self.note("close \(closeCode.rawValue) \(text)")
    }
}
