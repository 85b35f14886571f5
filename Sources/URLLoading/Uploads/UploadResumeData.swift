import Foundation
import HTTPSemantics

/// The state needed to continue an interrupted upload. Programs store it as opaque data.
package struct UploadResumeData: Sendable {
    /// Largest encoded size without a body, in bytes.
    package static let limit = 1 << 20
    /// Largest body from memory that is stored, in bytes.
    package static let bodyLimit = 8 << 20

    package enum Body: Sendable, Equatable {
        case data(Data)
        /// The file must be the same when the upload is continued.
        case file(URL, FileIdentity)
        /// The delegate supplies the rest.
        case stream
    }

    package var originalRequest: URLRequest
    /// The request that created the upload, after redirects.
    package var currentRequest: URLRequest
    /// The upload resource.
    package var resource: URL
    package var version: UploadVersion
    /// Bytes that the server has acknowledged; it may have more.
    package var acknowledged: Int64
    /// Of the whole body; `nil` if unknown.
    package var length: Int64?
    /// Most bytes of a part; `nil` for no limit.
    package var partSize: Int64?
    /// The end of the upload resource's lifetime; `nil` if the server has not told it.
    package var expiry: HTTPDate?
    package var body: Body

    package init(
        originalRequest: URLRequest, currentRequest: URLRequest, resource: URL, version: UploadVersion,
        acknowledged: Int64, length: Int64?, partSize: Int64?, expiry: HTTPDate? = nil, body: Body
    ) {
        self.originalRequest = originalRequest
        self.currentRequest = currentRequest
        self.resource = resource
        self.version = version
        self.acknowledged = acknowledged
        self.length = length
        self.partSize = partSize
        self.expiry = expiry
        self.body = body
    }

    /// - Returns: `nil` if `encoded` cannot have created the data. Does not look at the file.
    package init?(_ data: Data) {
        // Only binary property lists: parsers of the other formats recurse without limit.
        guard data.count <= Self.limit + Self.bodyLimit, data.starts(with: "bplist00".utf8),
            let record = try? PropertyListDecoder().decode(UploadRecord.self, from: data),
            record.version == UploadRecord.version,
            let original = record.originalRequest.request("POST", "PUT", "PATCH"),
            let current = record.currentRequest.request("POST", "PUT", "PATCH"),
            let resource = URL(string: record.resource), StoredRequest.isOfHTTP(resource),
            let version = UploadVersion(rawValue: record.protocolVersion), let body = record.body,
            record.length == body.length, (0...(record.length ?? .max)).contains(record.acknowledged),
            record.partSize.map({ $0 > 0 }) ?? true
        else { return nil }
        self.init(
            originalRequest: original, currentRequest: current, resource: resource, version: version,
            acknowledged: record.acknowledged, length: record.length, partSize: record.partSize,
            expiry: record.expires.map { HTTPDate(seconds: $0) }, body: body)
    }

    /// Whether encoding takes more than a millisecond.
    var isLarge: Bool {
        if case .data(let data) = self.body { data.count > 1 << 20 } else { false }
    }

    /// A binary property list.
    /// - Returns: `nil` if a request or the body is too large, or if a request is not an HTTP request.
    package func encoded() -> Data? {
        guard let original = StoredRequest(self.originalRequest), let current = StoredRequest(self.currentRequest)
        else { return nil }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        guard let data = try? encoder.encode(UploadRecord(self, original, current)),
            data.count <= Self.limit + Self.bodyLimit
        else { return nil }
        return data
    }
}

extension UploadResumeData.Body {
    /// In bytes; `nil` if unknown.
    var length: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(_, let identity): identity.size
        case .stream: nil
        }
    }
}

/// The resume data that a task was made from: one reference, because few tasks have any.
final class UploadResumption: Sendable {
    let data: UploadResumeData

    init(_ data: UploadResumeData) { self.data = data }
}

/// The encoded form of an upload's resume data.
private struct UploadRecord: Codable {
    static let version = 1
    private static let longestPath = 4096

    var version = Self.version
    /// Distinguishes the data from those of a download.
    var kind = "upload"
    let originalRequest: StoredRequest
    let currentRequest: StoredRequest
    let resource: String
    let protocolVersion: Int
    let acknowledged: Int64
    let length: Int64?
    let partSize: Int64?
    /// Unix time in seconds.
    let expires: Int64?
    /// Exactly one of these three is present.
    let data: Data?
    let file: StoredFile?
    let stream: Bool?

    struct StoredFile: Codable {
        let path: String
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let modified: Int64
    }

    init(_ data: UploadResumeData, _ original: StoredRequest, _ current: StoredRequest) {
        self.originalRequest = original
        self.currentRequest = current
        self.resource = data.resource.absoluteString
        self.protocolVersion = data.version.rawValue
        self.acknowledged = data.acknowledged
        self.length = data.length
        self.partSize = data.partSize
        self.expires = data.expiry?.seconds
        switch data.body {
        case .data(let bytes): (self.data, self.file, self.stream) = (bytes, nil, nil)
        case .stream: (self.data, self.file, self.stream) = (nil, nil, true)
        case .file(let url, let identity):
            let file = StoredFile(
                path: url.path, device: identity.device, inode: identity.inode, size: identity.size,
                modified: identity.modified)
            (self.data, self.file, self.stream) = (nil, file, nil)
        }
    }

    /// `nil` if the stored values describe no body, or several.
    var body: UploadResumeData.Body? {
        guard self.kind == "upload" else { return nil }
        switch (self.data, self.file, self.stream) {
        case (let data?, nil, nil): return .data(data)
        case (nil, nil, true?): return .stream
        case (nil, let file?, nil):
            guard file.path.hasPrefix("/"), file.path.utf8.count <= Self.longestPath, !file.path.utf8.contains(0),
                file.size >= 0
            else { return nil }
            let identity = FileIdentity(
                device: file.device, inode: file.inode, size: file.size, modified: file.modified)
            return .file(URL(fileURLWithPath: file.path), identity)
        default: return nil
        }
    }
}
