import Foundation
import URLLoading

/// Hears of the beginning and the end of an attachment.
final class AttachmentDelegate: NSObject, URLSessionWebSocketDelegate {
    private let opened: @Sendable () -> Void
    private let ended: @Sendable ((any Error)?) -> Void

    init(opened: @escaping @Sendable () -> Void, ended: @escaping @Sendable ((any Error)?) -> Void) {
        self.opened = opened
        self.ended = ended
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        self.opened()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.ended(error)
    }
}
