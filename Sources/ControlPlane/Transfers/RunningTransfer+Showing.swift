import ControlAPI
import Foundation
import GatewayCore
import Synchronization
import URLLoading

extension RunningTransfer {
    /// As it is now.
    func shown(_ anchor: TimeAnchor) -> Transfer {
        self.state.withLock { state in
            let counts = state.task.map { Counts($0) } ?? state.counts
            let url = self.order.request.url?.absoluteString ?? ""
            var shown = Transfer(
                id: "\(self.number)", kind: self.order.kind.rawValue, state: state.stage.rawValue,
                method: self.order.request.httpMethod ?? "GET", url: url, priority: state.priority.decimal,
                createdAt: anchor.text(self.createdAt), attempt: state.attempt, sentBytes: counts.sent,
                receivedBytes: counts.received, canResume: state.resumeData != nil)
            shown.currentUrl = counts.currentURL == url ? nil : counts.currentURL
            if case .file(_, let path) = self.order.body { shown.file = path }
            shown.destination = self.order.destination?.path
            shown.credential = self.order.credential?.name
            shown.description = state.description
            shown.labels = state.labels.isEmpty ? nil : state.labels
            shown.startedAt = state.startedAt.map { anchor.text($0) }
            shown.endedAt = state.endedAt.map { anchor.text($0) }
            shown.expectedSendBytes = counts.expectedToSend < 0 ? nil : counts.expectedToSend
            shown.expectedReceiveBytes = counts.expectedToReceive < 0 ? nil : counts.expectedToReceive
            shown.writtenBytes = state.written
            shown.expectedWriteBytes = state.expectedToWrite
            shown.resumedAtBytes = state.resumedAt
            shown.progress = Self.progress(state, counts)
            shown.contentBytes = Self.contentLength(state, self.order)
            shown.response = counts.response.map { TransferResponse($0) }
            shown.error = state.failure?.shown
            shown.metrics = state.metrics.map { TransferMetrics($0) }
            return shown
        }
    }

    private static func progress(_ state: borrowing State, _ counts: Counts) -> Double? {
        if state.stage == .finished { return 1 }
        func part(_ done: Int64?, _ whole: Int64?) -> Double? {
            guard let done, let whole, whole > 0 else { return nil }
            return (min(1, Double(done) / Double(whole)) * 10_000).rounded() / 10_000
        }
        return part(state.written, state.expectedToWrite)
            ?? (counts.expectedToSend > 0 && counts.response == nil
                ? part(counts.sent, counts.expectedToSend) : part(counts.received, counts.expectedToReceive))
    }

    private static func contentLength(_ state: borrowing State, _ order: TransferOrder) -> Int64? {
        guard state.stage == .finished else { return nil }
        return order.destination == nil ? Int64(state.content.count) : state.written ?? 0
    }
}

extension TransferResponse {
    fileprivate init(_ response: HTTPURLResponse) {
        let headers = response.allHeaderFields.map { name, value in
            let name = "\(name)"
            return Header(name: name, value: name.lowercased() == "set-cookie" ? "(hidden)" : "\(value)")
        }
        self.init(
            status: response.statusCode, headers: headers.sorted { $0.name.lowercased() < $1.name.lowercased() },
            mediaType: response.mimeType)
    }
}

extension TransferMetrics {
    fileprivate init(_ metrics: URLSessionTaskMetrics) {
        self.init(
            durationMs: metrics.taskInterval.duration.wireMilliseconds, redirects: metrics.redirectCount,
            transactions: metrics.transactionMetrics.map { TransferTransaction($0) })
    }
}

extension TransferTransaction {
    fileprivate init(_ metrics: URLSessionTaskTransactionMetrics) {
        func span(_ from: Date?, _ to: Date?) -> Double? {
            guard let from, let to else { return nil }
            return to.timeIntervalSince(from).wireMilliseconds
        }
        func place(_ host: String?, _ port: Int?) -> String? {
            guard let host, let port else { return nil }
            return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
        let version: String? =
            switch metrics.negotiatedTLSProtocolVersion {
            case .TLSv12?: "TLS 1.2"
            case .TLSv13?: "TLS 1.3"
            default: nil
            }
        self.init(
            method: metrics.request.httpMethod ?? "GET", url: metrics.request.url?.absoluteString ?? "",
            status: (metrics.response as? HTTPURLResponse)?.statusCode, protocol: metrics.networkProtocolName,
            reusedConnection: metrics.isReusedConnection,
            localAddress: place(metrics.localAddress, metrics.localPort),
            remoteAddress: place(metrics.remoteAddress, metrics.remotePort), tlsVersion: version,
            lookupMs: span(metrics.domainLookupStartDate, metrics.domainLookupEndDate),
            connectMs: span(metrics.connectStartDate, metrics.connectEndDate),
            secureMs: span(metrics.secureConnectionStartDate, metrics.secureConnectionEndDate),
            requestMs: span(metrics.requestStartDate, metrics.requestEndDate),
            responseAfterMs: span(metrics.requestStartDate, metrics.responseStartDate),
            responseMs: span(metrics.responseStartDate, metrics.responseEndDate),
            sentBytes: metrics.countOfRequestHeaderBytesSent + metrics.countOfRequestBodyBytesSent,
            receivedBytes: metrics.countOfResponseHeaderBytesReceived + metrics.countOfResponseBodyBytesReceived)
    }
}

extension TimeInterval {
    /// To the microsecond.
    fileprivate var wireMilliseconds: Double { (self * 1_000_000).rounded() / 1000 }
}
