import GatewayCore
import SessionTasks
import StreamTransport

/// In which order connections are listed.
package struct ConnectionSort: Sendable, Equatable {
    package enum Criterion: String, CaseIterable, Sendable {
        /// The order in which they came about on their loop.
        case id
        case bytes, receivedBytes, sentBytes, queuedBytes, rtt, idle, age
    }

    package var criterion = Criterion.id
    package var isDescending = false

    package init() {}

    /// `bytes`, or `-bytes` for the largest first.
    package init(_ query: Query) throws(ControlProblem) {
        guard let text = try query.value("sort") else { return }
        self.isDescending = text.hasPrefix("-")
        guard let criterion = Criterion(rawValue: String(text.drop { $0 == "-" })),
            text.count - criterion.rawValue.count == (self.isDescending ? 1 : 0)
        else {
            let known = Criterion.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlProblem(
                400, "invalid-parameter", "sort is to be one of \(known), with - before it for the largest first."
            )
            .at(parameter: "sort")
        }
        self.criterion = criterion
    }

    /// Whether a page can begin behind any connection without a snapshot of the whole list: what is sorted by never
    /// changes.
    package var isStable: Bool { self.criterion == .id && !self.isDescending }

    /// What is compared; `id` is compared by the name itself.
    package func value(_ report: ConnectionReport) -> Int64 {
        switch self.criterion {
        case .id: 0
        case .bytes: Int64(clamping: (report.record?.bytesReceived ?? 0) &+ (report.record?.bytesSent ?? 0))
        case .receivedBytes: Int64(clamping: report.record?.bytesReceived ?? 0)
        case .sentBytes: Int64(clamping: report.record?.bytesSent ?? 0)
        case .queuedBytes: Int64(report.queuedSendBytes + report.queuedReceiveBytes)
        case .rtt: report.roundTrips?.last?.wholeMicroseconds ?? -1
        case .idle: report.idle.wholeMicroseconds
        case .age: report.createdAt.duration(to: report.closing?.at ?? report.takenAt).wholeMicroseconds
        }
    }

    /// The names in order; equal ones by name.
    package func sorted(_ reports: [ConnectionReport]) -> [ConnectionKey] {
        let pairs = reports.map { (value: self.value($0), key: $0.key) }
        let ordered = pairs.sorted { left, right in
            if left.value != right.value {
                return self.isDescending ? left.value > right.value : left.value < right.value
            }
            return self.criterion == .id && self.isDescending ? left.key > right.key : left.key < right.key
        }
        return ordered.map(\.key)
    }
}
