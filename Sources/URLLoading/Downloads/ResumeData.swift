import Foundation
import HTTPSemantics

/// What goes on with a download that broke off, as it is given to the program: opaque, and kept by it as it likes.
package struct ResumeData: Sendable {
    /// Larger ones are refused unread, in bytes.
    package static let limit = 1 << 20

    package var originalRequest: URLRequest
    /// The same after redirects.
    package var currentRequest: URLRequest
    package var validator: ResumeValidator
    /// At least 1.
    package var bytesReceived: Int64
    /// Of the whole; `nil` where the server did not tell.
    package var total: Int64?
    package var file: DownloadFileName

    package init(
        originalRequest: URLRequest, currentRequest: URLRequest, validator: ResumeValidator, bytesReceived: Int64,
        total: Int64?, file: DownloadFileName
    ) {
        self.originalRequest = originalRequest
        self.currentRequest = currentRequest
        self.validator = validator
        self.bytesReceived = bytesReceived
        self.total = total
        self.file = file
    }

    /// - Returns: `nil` for what `encoded` did not give, for a request that is not of HTTP, and for a file that cannot
    ///   be one of ours. Whether the file is there is not asked.
    package init?(_ data: Data) {
        // Of the forms that property lists have, ours alone: the others nest without end.
        guard data.count <= Self.limit, data.starts(with: "bplist00".utf8),
            let record = try? PropertyListDecoder().decode(ResumeRecord.self, from: data),
            record.version == ResumeRecord.version,
            let original = record.originalRequest.request, let current = record.currentRequest.request,
            let validator = record.resumeValidator, let file = DownloadFileName(record.file),
            record.bytesReceived > 0, record.total.map({ $0 >= record.bytesReceived }) ?? true
        else { return nil }
        self.init(
            originalRequest: original, currentRequest: current, validator: validator,
            bytesReceived: record.bytesReceived, total: record.total, file: file)
    }

    /// A binary property list.
    /// - Returns: `nil` where a request is too large to be kept, or is not of HTTP.
    package func encoded() -> Data? {
        guard let original = StoredRequest(self.originalRequest), let current = StoredRequest(self.currentRequest)
        else { return nil }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let record = ResumeRecord(self, original, current)
        guard let data = try? encoder.encode(record), data.count <= Self.limit else { return nil }
        return data
    }
}
