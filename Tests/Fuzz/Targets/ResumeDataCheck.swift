import Foundation
import URLLoading

/// What is taken for resume data is of HTTP, leads to no other file than one of ours, and is the same when it is written
/// and read again.
enum ResumeDataCheck {
    static func run(_ bytes: [UInt8]) throws(FuzzFault) {
        guard let found = ResumeData(Data(bytes)) else { return }
        try FuzzFault.expect(found.bytesReceived > 0, "\(found.bytesReceived) bytes received")
        try FuzzFault.expect(found.total.map { $0 >= found.bytesReceived } ?? true, "a whole that is less than a part")
        let folder = FileManager.default.temporaryDirectory.standardizedFileURL.path
        let place = found.file.url.standardizedFileURL.deletingLastPathComponent().path
        try FuzzFault.expect(place == folder, "the file is in \(place)")
        for request in [found.originalRequest, found.currentRequest] {
            let scheme = request.url?.scheme?.lowercased() ?? "none"
            try FuzzFault.expect(["http", "https"].contains(scheme), "a request of \(scheme)")
            try FuzzFault.expect(request.httpMethod == "GET", "a request by \(request.httpMethod ?? "no method")")
        }
        // What the input left out of it may make it longer than the limit.
        guard let written = found.encoded() else { return }
        guard let again = ResumeData(written) else { throw FuzzFault("what was read cannot be read again") }
        try FuzzFault.expect(
            again.originalRequest == found.originalRequest && again.currentRequest == found.currentRequest
                && again.validator == found.validator && again.bytesReceived == found.bytesReceived
                && again.total == found.total && again.file == found.file, "is another when read again")
    }
}
