import Foundation
import URLLoading

/// Accepted resume data is of HTTP, names no file but one of ours, and is equal after writing and reading it again.
enum ResumeDataCheck {
    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        guard let found = ResumeData(Data(bytes)) else { return }
        try InvariantViolation.expect(found.bytesReceived > 0, "\(found.bytesReceived) bytes received")
        try InvariantViolation.expect(
            found.total.map { $0 >= found.bytesReceived } ?? true, "a whole that is less than a part")
        let folder = FileManager.default.temporaryDirectory.standardizedFileURL.path
        let place = found.file.url.standardizedFileURL.deletingLastPathComponent().path
        try InvariantViolation.expect(place == folder, "the file is in \(place)")
        for request in [found.originalRequest, found.currentRequest] {
            let scheme = request.url?.scheme?.lowercased() ?? "none"
            try InvariantViolation.expect(["http", "https"].contains(scheme), "a request of \(scheme)")
            try InvariantViolation.expect(
                request.httpMethod == "GET", "a request by \(request.httpMethod ?? "no method")")
        }
        // Members that the input omitted may make it longer than the limit.
        guard let written = found.encoded() else { return }
        guard let again = ResumeData(written) else { throw InvariantViolation("what was read cannot be read again") }
        try InvariantViolation.expect(
            again.originalRequest == found.originalRequest && again.currentRequest == found.currentRequest
                && again.validator == found.validator && again.bytesReceived == found.bytesReceived
                && again.total == found.total && again.file == found.file, "is another when read again")
    }
}
