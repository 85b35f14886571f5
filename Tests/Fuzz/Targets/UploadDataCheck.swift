import Foundation
import URLLoading

/// Accepted resume data of an upload is of HTTP, has a body of the length that it names, and is equal after writing and
/// reading it again.
enum UploadDataCheck {
    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let found = UploadResumeData(Data(bytes)) else { return }
        try InvariantViolation.expect(
            (0...(found.length ?? .max)).contains(found.acknowledged), "\(found.acknowledged) bytes acknowledged")
        try InvariantViolation.expect(found.partSize ?? 1 > 0, "parts of \(found.partSize ?? 0) bytes")
        try self.checkBody(of: found)
        for url in [found.originalRequest.url, found.currentRequest.url, found.resource] {
            let scheme = url?.scheme?.lowercased() ?? "none"
            try InvariantViolation.expect(["http", "https"].contains(scheme), "a URL of \(scheme)")
        }
        // Members that the input omitted may make it longer than the limit.
        guard let written = found.encoded() else { return }
        guard let again = UploadResumeData(written) else {
            throw InvariantViolation("what was read cannot be read again")
        }
        try InvariantViolation.expect(
            again.originalRequest == found.originalRequest && again.currentRequest == found.currentRequest
                && again.resource == found.resource && again.version == found.version
                && again.acknowledged == found.acknowledged && again.length == found.length
                && again.partSize == found.partSize && again.body == found.body, "is another when read again")
    }

    private static func checkBody(of found: UploadResumeData) throws(InvariantViolation) {
        switch found.body {
        case .stream: try InvariantViolation.expect(found.length == nil, "a stream with a length")
        case .data(let data):
            try InvariantViolation.expect(found.length == Int64(data.count), "data of another length")
        case .file(let url, let identity):
            try InvariantViolation.expect(url.isFileURL && url.path.hasPrefix("/"), "a file at \(url)")
            try InvariantViolation.expect(found.length == identity.size, "a file of another length")
        }
    }
}
