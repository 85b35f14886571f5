import Foundation
import HTTPSemantics

/// The state needed to resume an interrupted download. Programs store it as opaque data.
package struct ResumeData: Sendable {
    /// Largest encoded size, in bytes.
    package static let limit = 1 << 20

    package var originalRequest: URLRequest
    /// After redirects. Without the fields of an earlier resumption.
    package var currentRequest: URLRequest
    package var validator: ResumeValidator
    /// At least 1.
    package var bytesReceived: Int64
    /// Total length; `nil` if unknown.
    package var total: Int64?
    package var file: DownloadFileName

    package init(
        originalRequest: URLRequest, currentRequest: URLRequest, validator: ResumeValidator, bytesReceived: Int64,
        total: Int64?, file: DownloadFileName
    ) {
        self.originalRequest = originalRequest
        self.currentRequest = currentRequest
        for name in ["Range", "If-Range"] { self.currentRequest.setValue(nil, forHTTPHeaderField: name) }
        self.validator = validator
        self.bytesReceived = bytesReceived
        self.total = total
        self.file = file
    }

    /// - Returns: `nil` if `encoded` cannot have created the data. Does not check that the file exists.
    package init?(_ data: Data) {
        // Only binary property lists: parsers of the other formats recurse without limit.
        guard data.count <= Self.limit, data.starts(with: "bplist00".utf8),
            let record = try? PropertyListDecoder().decode(ResumeRecord.self, from: data),
            record.version == ResumeRecord.version,
            let original = record.originalRequest.request("GET"), let current = record.currentRequest.request("GET"),
            let validator = record.resumeValidator, let file = DownloadFileName(record.file),
            record.bytesReceived > 0, record.total.map({ $0 >= record.bytesReceived }) ?? true
        else { return nil }
        self.init(
            originalRequest: original, currentRequest: current, validator: validator,
            bytesReceived: record.bytesReceived, total: record.total, file: file)
    }

    /// A binary property list.
    /// - Returns: `nil` if a request is too large or is not an HTTP request.
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

/// The encoded form of resume data.
private struct ResumeRecord: Codable {
    static let version = 1

    var version = Self.version
    let originalRequest: StoredRequest
    let currentRequest: StoredRequest
    let entityTag: String?
    let lastModified: String?
    let bytesReceived: Int64
    let total: Int64?
    let file: String

    init(_ data: ResumeData, _ original: StoredRequest, _ current: StoredRequest) {
        self.originalRequest = original
        self.currentRequest = current
        switch data.validator {
        case .entityTag(let value): (self.entityTag, self.lastModified) = (value, nil)
        case .lastModified(let value): (self.entityTag, self.lastModified) = (nil, value)
        }
        self.bytesReceived = data.bytesReceived
        self.total = data.total
        self.file = data.file.text
    }

    var resumeValidator: ResumeValidator? {
        if let tag = self.entityTag { return Self.isFieldValue(tag) ? .entityTag(tag) : nil }
        guard let date = self.lastModified, Self.isFieldValue(date) else { return nil }
        return .lastModified(date)
    }

    /// The validator becomes the value of `If-Range`.
    private static func isFieldValue(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 1024 && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
