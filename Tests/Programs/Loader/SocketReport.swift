import Foundation
import URLLoading

/// What became of a WebSocket.
struct SocketReport: Encodable {
    let status: Int?
    let currentURL: String?
    let events: [String]
    let messages: [String]
    let closeCode: Int
    /// The error thrown by an operation of the task, and its final error.
    let failure: FailureReport?
    let error: FailureReport?
    /// Those kept in the end, as NAME=VALUE.
    let cookies: [String]
    let transactions: [TransactionReport]

    init(
        _ task: URLSessionWebSocketTask, messages: [String], ears: SocketDelegate, failure: (any Error)?,
        error: (any Error)?, cookies: [HTTPCookie]
    ) {
        self.status = (task.response as? HTTPURLResponse)?.statusCode
        self.currentURL = task.currentRequest?.url?.absoluteString
        self.events = ears.events
        self.messages = messages
        self.closeCode = Int(task.closeCode.rawValue)
        self.failure = failure.map(FailureReport.init)
        self.error = error.map(FailureReport.init)
        self.cookies = cookies.map { "\($0.name)=\($0.value)" }.sorted()
        self.transactions = ears.metrics?.transactionMetrics.map(TransactionReport.init) ?? []
    }
}
