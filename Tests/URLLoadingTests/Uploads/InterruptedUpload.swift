import Foundation
import TLSEngine
import Testing
import URLLoading

/// A server at which uploads to `/up` are interrupted as soon as the client knows that they are continued at `/part`, and
/// a session that uploads to it.
final class InterruptedUpload: Sendable {
    static let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 8) })

    let server: WebServer
    let recorder: DataRecorder
    let session: URLSession

    /// - Parameters:
    ///   - announcement: the fields of the 104 response.
    ///   - end: of the interrupted request.
    ///   - tls: of the server; `nil` for none.
    ///   - change: to the session's configuration.
    ///   - script: answers the requests to `/part`.
    init(
        announcing announcement: [String] = announcement(), interruptedBy end: Answer.Step = .reset,
        policies: Policies = Policies(),
        tls: TLSContext? = nil, configure change: (URLSessionConfiguration) -> Void = { _ in },
        answers script: @escaping WebServer.Script
    ) async throws {
        let known = Gate()
        var policies = policies
        policies.informational = { _ in known.open() }
        self.recorder = DataRecorder(policies)
        self.session = URLSession.test(self.recorder) {
            $0.urlCache = nil
            change($0)
        }
        self.server = try await WebServer(tls: tls)
        self.server.onHead("/up") { _ in .head(104, announcement).then(.wait(known), end) }
        self.server.on("/part", script)
    }

    deinit { self.session.invalidateAndCancel() }

    /// The fields of a 104 response.
    static func announcement(_ version: Int = 9, at location: String = "/part", more: [String] = []) -> [String] {
        ["Upload-Draft-Interop-Version: \(version)", "Location: \(location)"] + more
    }

    var request: URLRequest { .to(self.server.url("/up"), "POST", ["Content-Type": "text/plain", "X-Own": "1"]) }

    /// Uploads data to the end.
    @discardableResult
    func run(_ content: Data = content) async throws -> Recorder.Recording {
        self.session.uploadTask(with: self.request, from: content).resume()
        return try await self.recorder.end()
    }

    /// The requests to `/part`, as method and offset.
    var parts: [String] {
        self.server.requests("/part").map { $0.method + ($0["Upload-Offset"].map { " \($0)" } ?? "") }
    }

    /// The resume data of an upload whose server does not tell the offset.
    func resumeData(_ start: (URLSession, URLRequest) -> URLSessionUploadTask) async throws -> Data {
        start(self.session, self.request).resume()
        let error = try await self.recorder.end().error as? URLError
        return try #require(error?.uploadTaskResumeData)
    }
}

extension Answer {
    /// The response to HEAD.
    static func offset(_ offset: Int, _ more: [String] = ["Upload-Complete: ?0"]) -> Answer {
        .head(204, ["Upload-Offset: \(offset)"] + more)
    }

    /// The response of the upload's target.
    static let uploaded = Answer.text("done", ["Upload-Complete: ?1"])

    /// Tells the offset, and takes the rest.
    static func continuing(at offset: Int) -> WebServer.Script {
        { $0.method == "HEAD" ? .offset(offset) : .uploaded }
    }
}
