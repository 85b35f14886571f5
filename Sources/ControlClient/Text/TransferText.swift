import CommandLineText
import ControlAPI

/// Formats transfers as text.
package enum TransferText {
    package static let all = "/v1/transfers"

    package static func path(_ id: String) -> String {
        "\(self.all)/\(ControlRequest.segment(id))"
    }

    /// Progress of a transfer.
    /// - Parameter rate: bytes per second; `nil` if not known yet.
    package static func progress(_ one: Transfer, rate: Double?) -> ProgressLine {
        let isUpload = one.kind == "upload" && one.receivedBytes == 0
        let done = isUpload ? one.sentBytes : one.writtenBytes ?? one.receivedBytes
        let total = isUpload ? one.expectedSendBytes : one.expectedWriteBytes ?? one.expectedReceiveBytes
        return ProgressLine(
            done: UInt64(max(0, done)), total: total.flatMap { $0 >= 0 ? UInt64($0) : nil }, rate: rate)
    }

    /// One-line summary of a finished transfer.
    package static func summary(_ one: Transfer) -> String {
        let bytes = UInt64(max(0, one.kind == "upload" ? one.sentBytes : one.writtenBytes ?? one.receivedBytes))
        let way = one.kind == "upload" ? "sent" : "received"
        let place = one.destination.map { ", to \($0)" } ?? ""
        let status = one.response.map { ", status \($0.status)" } ?? ""
        return "transfer \(one.id) \(one.state): \(way) \(QuantityText.bytes(bytes))\(status)\(place)"
    }

    /// Failure of a transfer; `nil` if it succeeded.
    /// - Parameter remedy: what to do about an incomplete transfer.
    package static func failure(_ one: Transfer, remedy: String) -> ControlFailure? {
        switch one.state {
        case "finished":
            guard let status = one.response?.status, status >= 400 else { return nil }
            let place = one.destination.map { "the response body is in \($0)" } ?? ""
            return ControlFailure(.peer, "\(one.url): the server responded with status \(status)", remedy: place)
        case "cancelled": return ControlFailure(.cancelled, "transfer \(one.id) is cancelled", remedy: remedy)
        case "failed":
            let detail = ControlFailure.trimmed(one.error?.detail ?? "the transfer failed")
            return ControlFailure(.peer, "\(one.url): \(detail)", remedy: remedy)
        default:
            return ControlFailure(
                .unavailable, "transfer \(one.id) is \(one.state)",
                remedy: "it continues in the gateway; follow it with --resume \(one.id)")
        }
    }
}
