import Foundation
import HTTPSemantics
import HTTPTypes

/// The parts of a `multipart/x-mixed-replace`, each a response with its content.
///
/// Each is told and answered like a response of its own: until then what comes waits, and no more is pulled.
final class PartsSplitting {
    private var splitter: MultipartSplitter
    private let response: URLResponse
    /// The first answer is about the whole.
    private var isAnswered = false
    private var isAtEnd = false

    /// - Returns: `nil` for a response that is not of parts.
    init?(_ response: URLResponse) {
        guard let http = response as? HTTPURLResponse, http.mimeType == "multipart/x-mixed-replace",
            let type = http.value(forHTTPHeaderField: "Content-Type").flatMap({ ContentType($0) }),
            let boundary = type.parameter("boundary"), let splitter = MultipartSplitter(boundary: boundary)
        else { return nil }
        self.splitter = splitter
        self.response = response
    }

    /// The response that was shown is allowed.
    /// - Returns: whether more may be pulled.
    func goOn(_ transfer: Transfer) -> Bool {
        self.isAnswered = true
        return self.give(transfer)
    }

    /// - Returns: whether the bytes were taken, which they always are.
    func received(_ data: Data, _ transfer: Transfer) -> Bool {
        self.splitter.bytesReceived(data)
        if self.isAnswered, self.give(transfer) { transfer.loader?.pull(data.count) }
        return true
    }

    func ended(_ transfer: Transfer) {
        self.isAtEnd = true
        self.splitter.ended()
        _ = self.give(transfer)
    }

    /// Tells what is there, up to the next response that must be answered.
    private func give(_ transfer: Transfer) -> Bool {
        while let event = self.splitter.nextEvent() {
            switch event {
            case .partBegan(let fields):
                guard !self.isAtEnd else { continue }
                self.isAnswered = false
                transfer.show(self.part(fields))
                if !self.isAnswered { return false }
            case .content(let bytes): transfer.give(Data(bytes), wireBytes: bytes.count)
            case .partEnded, .finished: break
            // Cameras just stop: what came was fine.
            case .violation: break
            }
        }
        return true
    }

    private func part(_ fields: HTTPFields) -> URLResponse {
        guard let whole = self.response as? HTTPURLResponse, let url = whole.url else { return self.response }
        return HTTPURLResponse(
            url: url, statusCode: whole.statusCode, httpVersion: whole.httpVersion ?? "HTTP/1.1", fields: fields,
            contentIsEncoded: false)
    }
}
