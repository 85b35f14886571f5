import Foundation
import URLLoading

/// What became of a transfer.
struct TransferReport: Encodable, Sendable {
    let url: String?
    let currentURL: String?
    let status: Int?
    let headers: [String: String]?
    /// Delegate calls, in order.
    let events: [String]
    /// Bytes that the delegate was given.
    let received: Int64
    let countReceived: Int64
    let expectedToReceive: Int64
    let countSent: Int64
    let expectedToSend: Int64
    let state: Int
    let fraction: Double
    let error: FailureReport?
    let redirects: Int?
    let transactions: [TransactionReport]?

    init(
        _ task: URLSessionTask, events: [String], received: Int64, error: (any Error)?,
        metrics: URLSessionTaskMetrics?
    ) {
        self.url = task.originalRequest?.url?.absoluteString
        self.currentURL = task.currentRequest?.url?.absoluteString
        let response = task.response as? HTTPURLResponse
        self.status = response?.statusCode
        self.headers = response.map { answer in
            Dictionary(
                answer.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }, uniquingKeysWith: { $1 })
        }
        self.events = events
        self.received = received
        self.countReceived = task.countOfBytesReceived
        self.expectedToReceive = task.countOfBytesExpectedToReceive
        self.countSent = task.countOfBytesSent
        self.expectedToSend = task.countOfBytesExpectedToSend
        self.state = task.state.rawValue
        self.fraction = task.progress.fractionCompleted
        self.error = error.map(FailureReport.init)
        self.redirects = metrics?.redirectCount
        self.transactions = metrics?.transactionMetrics.map(TransactionReport.init)
    }
}
